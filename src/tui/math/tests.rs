//! Formulas and their rows, and invariants for any text.

use super::*;
use proptest::prelude::*;

#[track_caller]
fn check(tex: &str, expected: &str) {
    assert_eq!(inline(tex).as_deref(), Some(expected), "{tex}");
}

#[track_caller]
fn shows(tex: &str, expected: &[&str]) {
    assert_eq!(
        display(tex).as_deref(),
        Some(&expected.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>()[..]),
        "{tex}"
    );
}

#[test]
fn letters_and_signs() {
    check("\\alpha^2", "α²");
    check("x_1 + x_{12} \\leq y^{n+1}", "x₁ + x₁₂ ≤ yⁿ⁺¹");
    check("E = mc^2", "E = mc²");
    check("f: \\mathbb{R} \\to \\mathbb{R}", "f: ℝ → ℝ");
    check("O(n \\log n)", "O(n log n)");
    check("x^{Q}", "x^Q");
    check("\\text{if } a", "if a");
    check("a\\text{ and }b", "a and b");
    check("x=y<z:=w", "x = y < z := w");
    check("\\{3x+2y,\\; x \\in \\{0, \\pm 1\\}\\}", "{3x+2y, x ∈ {0, ± 1}}");
    check("s \\to \\infty", "s → ∞");
    check("a\\times b", "a × b");
    check("A \\not\\subset B, x\\not= y", "A ⊄ B, x ≠ y");
    check("\\|v\\| = \\lvert x\\rvert", "‖v‖ = |x|");
    check("\\therefore x \\oint_C f", "∴ x ∮_C f");
    check("f'(x)", "f′(x)");
    check("\\lfloor x \\rfloor \\left\\lceil y \\right\\rceil", "⌊x⌋ ⌈y⌉");
    check("A \\xrightarrow{f} B \\tag{1}", "A →ᶠ B  (1)");
    check("\\color{red}x\\textcolor{blue}{y}\\label{eq}", "xy");
    check("50% \\& 5\\%", "50% & 5%");
}

#[test]
fn fractions_keep_their_meaning() {
    check("\\frac{1}{4x^2}", "1/(4x²)");
    check("\\frac{-b \\pm \\sqrt{b^2-4ac}}{2a}", "(−b ± √(b²−4ac))/(2a)");
    check("\\tfrac{3}{2s}", "3/(2s)");
    check("\\frac{\\pi^2}{6}", "π²/6");
    check("\\frac{1}{i^2}", "1/i²");
    check("\\frac{dy}{dx} = \\frac{\\partial f}{\\partial x}", "dy/dx = ∂f/∂x");
    check("x\\frac12y", "x 1/2 y");
    check("{\\frac12}x", "1/2 x");
    check("\\frac{a}{b}^2 + \\left(\\frac{a}{b}\\right)^2", "(a/b)² + (a/b)²");
    check("\\frac{\n  a\n}{\n  \\displaystyle b + c\n}", "a/(b + c)");
    check("\\frac{1}{\\frac{a}{b}}", "1/(a/b)");
    check("\\binom{n}{k}", "(n choose k)");
}

#[test]
fn roots_say_what_they_are_of() {
    check("\\sqrt{2} \\sqrt{a+b} \\sqrt{ab} \\sqrt{x^2}", "√2 √(a+b) √(ab) √(x²)");
    check("\\sqrt[3]{x}", "∛x");
    check("\\sqrt[4]{x}", "∜x");
    check("\\sqrt[k]{x+1}", "ᵏ√(x+1)");
    check("\\sqrt[n+1]{x}", "ⁿ⁺¹√x");
}

#[test]
fn functions_stand_apart() {
    check("\\cos\\theta+i\\sin\\theta", "cos θ+i sin θ");
    check("\\operatorname*{arg\\,max}_{x} f(x)", "arg maxₓ f(x)");
    check("\\operatorname{softmax}(x)", "softmax(x)");
    check("\\lim_{x\\to 0}\\frac{\\sin x}{x}", "lim_(x→0) (sin x)/x");
    check("\\sin^2(x)\\log_2(n)", "sin²(x) log₂(n)");
    check("\\max_{i \\in S}(a_i)", "max_(i∈S) (aᵢ)");
    check("\\deg p, \\gcd(a,b)", "deg p, gcd(a,b)");
    check("\\sum_{i=1}^n \\frac{1}{i^2} = \\frac{\\pi^2}{6}", "∑ᵢ₌₁ⁿ 1/i² = π²/6");
    check("\\sum\\limits_{i=1}^{n}i", "∑ᵢ₌₁ⁿ i");
    check("\\int_0^\\infty e^{-x}\\,dx", "∫₀^∞ e⁻ˣ dx");
    check("a \\equiv b \\pmod{n}, a \\bmod b", "a ≡ b (mod n), a mod b");
}

#[test]
fn marks_over_and_under() {
    check("\\vec{v} \\hat x \\bar{y} \\overline{AB}", "v\u{20d7} x\u{302} y\u{304} A\u{305}B\u{305}");
    check("\\vec{AB}", "vec(AB)");
    check("x \\stackrel{?}{=} y", "x =^? y");
    check("\\underset{x}{\\min} f", "minₓ f");
    check("\\underbrace{a+b}_{n}", "(a+b)ₙ");
    check("\\boxed{42}", "[42]");
}

#[test]
fn rows_stand_below_each_other_where_there_is_room() {
    let aligned = "\\begin{aligned} a &= b + c \\\\ a + b &= c \\end{aligned}";
    shows(aligned, &["    a = b + c", "a + b = c"]);
    check(aligned, "a = b + c; a + b = c");
    shows("a = b \\\\ c = d", &["a = b", "c = d"]);
    let matrix = "A = \\begin{pmatrix} 1 & 2 \\\\ 3 & -4 \\end{pmatrix} x";
    shows(matrix, &["A = ⎛1   2⎞ x", "    ⎝3  −4⎠"]);
    check(matrix, "A = (1 2; 3 −4) x");
    let cases = "|x| = \\begin{cases} x, & \\text{if } x \\ge 0 \\\\ -x & \\text{otherwise} \\end{cases}";
    shows(cases, &["|x| = ⎧ x   if x ≥ 0", "      ⎩ −x  otherwise"]);
    check(cases, "|x| = { x, if x ≥ 0; −x, otherwise");
    shows(
        "\\begin{bmatrix}1\\\\2\\\\3\\end{bmatrix} = \\begin{vmatrix}a&b\\\\c&d\\end{vmatrix}",
        &["⎡1⎤", "⎢2⎥ = │a  b│", "⎣3⎦   │c  d│"],
    );
    shows("\\left[\\begin{array}{cc} 1 & 0 \\end{array}\\right]", &["[1 0]"]);
    shows("\\begin{equation*}\nE = mc^2\n\\end{equation*}", &["E = mc²"]);
}

#[test]
fn what_is_not_known_is_not_drawn() {
    for tex in [
        "\\unknown{x}",
        "\\frac{1}",
        "a}b",
        "{a",
        "\\begin{tikz}\\end{tikz}",
        "\\begin{cases}a",
        "\\end{cases}",
        "\\begin{cases}a\\end{aligned}",
        "x^",
        "a & b",
        "\\",
        "\\sqrt[3{x}",
        "\\text{a",
    ] {
        assert_eq!(inline(tex), None, "{tex}");
    }
    assert_eq!(inline(&"{".repeat(1000)), None);
    assert_eq!(inline(&"x".repeat(10_000)), None);
    let wide = "y".to_owned() + &"&".repeat(60) + &"\\\\x".repeat(60);
    assert_eq!(display(&format!("\\begin{{matrix}}{wide}\\end{{matrix}}")), None);
    assert_eq!(inline(&"\\frac".repeat(1000)), None);
}

proptest! {
    #[test]
    fn nothing_panics(text in "([$a1 \\\\{}^_é,&\\-\\[\\]]|\\\\frac|\\\\begin\\{cases\\}|\\\\end\\{cases\\}|\\\\\\\\|\\\\sqrt|\\\\lim|\\\\text){0,40}", word in "\\PC{0,20}") {
        for tex in [text.clone(), word.clone(), format!("\\frac{{{text}}}{{{word}}}")] {
            let one = inline(&tex);
            if let Some(row) = &one {
                prop_assert!(!row.contains(|c| (NAME..=DRAWING).contains(&c)), "{row:?}");
            }
            for row in display(&tex).unwrap_or_default() {
                prop_assert!(!row.contains(|c| (NAME..=DRAWING).contains(&c)), "{row:?}");
            }
        }
    }
}
