//! Questions on the terminal: drawn in interactive mode, otherwise numbered lines on stderr, so that stdout
//! stays free.

use super::flags::RunArgs;
use crate::mode::interactive::question::{self, Answer, Context};
use crate::mode::report;
use crate::runtime::plain_text;
use std::io::{self, BufRead, IsTerminal, Write};

/// True if pi runs in interactive mode, judged by its arguments, stdin and stdout.
pub fn is_drawn(args: &RunArgs) -> bool {
    !args.print
        && args.mode.is_none()
        && args.list_models.is_none()
        && io::stdin().is_terminal()
        && io::stdout().is_terminal()
}

/// Lets the user choose from a drawn list. `None` if the user leaves the question.
pub fn choose_drawn(screen: Context<'_>, title: &str, text: &str, answers: &[String]) -> Option<usize> {
    given(question::choose(screen, title, text, answers))
}

/// Returns the value of an answer, or `None` if the user left the question. Ctrl+C and signals end the
/// program, since no session has begun.
pub fn given<T>(answer: io::Result<Answer<T>>) -> Option<T> {
    match answer {
        Ok(Answer::Given(answer)) => Some(answer),
        Ok(Answer::Left) => None,
        Ok(Answer::End(code)) => std::process::exit(i32::from(code)),
        Err(error) => {
            report::error(format_args!("Cannot use the terminal: {error}"));
            std::process::exit(1)
        }
    }
}

/// Prints `text` and ends the program with success, after the user left a question that pi needs answered.
pub fn leave(text: &str) -> ! {
    super::say::say(&format!("{text}\n"));
    std::process::exit(0)
}

/// True if stdin and stderr are terminals, so that a question can be asked.
pub fn possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Lets the user choose by number. `None` if nothing was chosen.
pub fn choose(question: &str, options: &[String]) -> Option<usize> {
    choose_from(&mut io::stdin().lock(), &mut io::stderr(), question, options)
}

/// Asks a yes-or-no question. Any answer but yes is a no.
pub fn confirm(question: &str) -> bool {
    let question = plain_text(question.as_bytes());
    let mut stderr = io::stderr();
    let asked = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    asked.is_ok()
        && io::stdin().lock().read_line(&mut answer).is_ok()
        && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn choose_from(
    input: &mut impl BufRead,
    output: &mut impl Write,
    question: &str,
    options: &[String],
) -> Option<usize> {
    const ATTEMPTS: usize = 3;
    let width = options.len().to_string().len();
    let mut text = format!("{question}\n");
    for (option, number) in options.iter().zip(1..) {
        text.push_str(&format!("  {number:width$}) {option}\n"));
    }
    write!(output, "{}", plain_text(text.as_bytes())).ok()?;
    for _ in 0..ATTEMPTS {
        write!(output, "Number (empty: none of them): ").ok()?;
        output.flush().ok()?;
        let mut answer = String::new();
        // The end of the input counts as an empty answer.
        if input.read_line(&mut answer).ok()? == 0 || answer.trim().is_empty() {
            return None;
        }
        let number: Option<usize> = answer.trim().parse().ok();
        if let Some(at) = number.and_then(|number| number.checked_sub(1))
            && at < options.len()
        {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: Option<usize>) -> String {
        let mut output = Vec::new();
        let options = ["one".to_owned(), "t\u{1b}[31mwo".to_owned()];
        let chosen = choose_from(&mut input.as_bytes(), &mut output, "Which?", &options);
        assert_eq!(chosen, expected, "{input:?}");
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn a_number_is_a_choice_and_nothing_is_none() {
        assert_eq!(check("2\n", Some(1)), "Which?\n  1) one\n  2) two\nNumber (empty: none of them): ");
        check(" 1 ", Some(0));
        check("x\n3\n1\n", Some(0));
        for none in ["", "\n", "0\n3\n-1\n1\n", "q\n"] {
            check(none, None);
        }
    }
}
