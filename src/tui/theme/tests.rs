//! Theme files with one error each, and the contrast of the built-in themes.

use super::*;

/// A theme file with every key set to `value`, except those in `changes`.
fn file(changes: &[(&str, Option<&str>)], vars: &str) -> String {
    let colors = Role::ALL.into_iter().filter_map(|role| {
        let change = changes.iter().find(|(name, _)| *name == role.name());
        let value = change.map_or(Some("\"#010203\""), |(_, value)| *value)?;
        Some(format!("\"{}\": {value}", role.name()))
    });
    let colors = colors.collect::<Vec<_>>().join(",");
    format!(r#"{{"name": "mine", "vars": {{{vars}}}, "colors": {{{colors}}}}}"#)
}

#[test]
fn a_value_is_a_number_a_hex_colour_nothing_or_a_variable() {
    let text = file(
        &[
            ("accent", Some("200")),
            ("error", Some("\"\"")),
            ("dim", Some("\"a\"")),
            ("selectedBg", Some("\"b\"")),
        ],
        r##""a": "b", "b": "c", "c": "#A0b0C0""##,
    );
    let theme = Theme::parse("mine", &text).unwrap();
    assert_eq!(theme.name, "mine");
    assert_eq!(theme.color(Role::Accent), Color::Indexed(200));
    assert_eq!(theme.color(Role::Error), Color::Default);
    assert_eq!(theme.color(Role::Dim), Color::Rgb(0xa0, 0xb0, 0xc0));
    assert_eq!(theme.color(Role::Text), Color::Rgb(1, 2, 3));
    assert_eq!(theme.style(Role::SelectedBg).background, Color::Rgb(0xa0, 0xb0, 0xc0));
    assert_eq!(theme.style(Role::SelectedBg).foreground, Color::Default);
}

#[test]
fn five_colours_follow_another_where_they_are_left_out() {
    let pairs = [
        ("scrollbarTrack", "muted"),
        ("scrollbarThumb", "text"),
        ("searchMatchBg", "selectedBg"),
        ("searchMatchText", "text"),
        ("thinkingMax", "thinkingXhigh"),
    ];
    assert_eq!(Role::ALL.iter().filter(|role| role.fallback().is_some()).count(), 5);
    for (optional, followed) in pairs {
        let text = file(&[(optional, None), (followed, Some("9"))], "");
        let theme = Theme::parse("x", &text).unwrap();
        let role = Role::ALL.into_iter().find(|role| role.name() == optional).unwrap();
        assert_eq!(theme.color(role), Color::Indexed(9), "{optional}");
    }
}

#[test]
fn errors_name_the_keys() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let error = Theme::parse("mine", text).unwrap_err();
        for part in expected {
            assert!(error.contains(part), "{part:?} is not in {error}");
        }
    }
    check("{", &["Failed to parse theme mine: "]);
    check("[]", &["Invalid theme \"mine\":", "name", "colors"]);
    check(
        &file(&[("text", None), ("accent", None)], ""),
        &["Missing required color tokens:\n  - accent\n  - text\n\nPlease add"],
    );
    check(&file(&[("dim", Some("256"))], ""), &["/colors/dim: 256"]);
    check(&file(&[("dim", Some("1.5"))], ""), &["/colors/dim: 1.5"]);
    check(&file(&[("dim", Some("[]"))], ""), &["/colors/dim: must be"]);
    check(&file(&[("dim", Some("\"#12345g\""))], ""), &["/colors/dim: Invalid hex color: #12345g"]);
    check(&file(&[("dim", Some("\"none\""))], ""), &["/colors/dim: Variable reference not found: none"]);
    check(
        &file(&[("dim", Some("\"a\""))], r#""a":"b","b":"a""#),
        &["/colors/dim: Circular variable reference detected: "],
    );
    check(
        &file(&[], "").replace("mine", "a/b"),
        &["Invalid theme name \"a/b\": theme names cannot contain \"/\""],
    );
    check(&file(&[], "").replace("mine", "system"), &["Invalid theme name \"system\""]);
    let with = |entry: &str| file(&[], "").replacen('{', &format!("{{{entry},"), 1);
    check(&with(r#""author": "me""#), &["/: must not have additional properties author"]);
    check(&with(r#""appearance": "grey""#), &["/appearance: must be \"dark\" or \"light\""]);
    check(&with(r#""export": {"bg": ""}"#), &["/export: must not have additional properties bg"]);
    check(&with(r#""export": {"pageBg": "none"}"#), &["/export/pageBg: Variable reference not found"]);
    check(
        &file(&[], "").replace(r#""accent""#, r#""accents": 1, "accent""#),
        &["/colors: must not have additional properties accents"],
    );
    check(&file(&[("dim", Some("\"#12\""))], ""), &["/colors/dim: Invalid hex color: #12"]);
    for wrong in ["okhsl(250 60% 155%)", "okhsl(250, 60%, 55%)", "oklch(70% 0.1)", "rgb(1 2 3)"] {
        let value = format!("\"{wrong}\"");
        check(&file(&[("dim", Some(&value))], ""), &["/colors/dim: Invalid color: "]);
    }
    let whole = r##""$schema": "x", "appearance": "dark", "export": {"pageBg": "#fff"}"##;
    assert!(Theme::parse("mine", &with(whole)).is_ok());
}

/// The colours are what the reference sends to a terminal, up to a step of a channel.
#[test]
fn functions_of_lightness_and_hue_are_colours() {
    for (text, expected) in [
        ("okhsl(250 60% 55%)", [78, 136, 194]),
        ("okhsl(29 90% 57%)", [233, 72, 58]),
        ("okhsl(120 30% 20%)", [44, 48, 32]),
        ("okhsl(330deg 85% 80%)", [239, 173, 232]),
        ("OKHSL(200 1 0.5)", [0, 136, 141]),
        ("oklch(62% 0.1 200)", [28, 152, 158]),
        ("oklch(0.7 0.15 -60)", [173, 135, 237]),
        ("oklch(0.7 0.4 30)", [255, 101, 81]),
        ("#0af", [0, 170, 255]),
    ] {
        let value = format!("\"{text}\"");
        let theme = Theme::parse("mine", &file(&[("dim", Some(&value))], "")).unwrap();
        let Color::Rgb(red, green, blue) = theme.color(Role::Dim) else { panic!("{text}") };
        let near = [red, green, blue].into_iter().zip(expected).all(|(a, b): (u8, u8)| a.abs_diff(b) <= 1);
        assert!(near, "{text}: {:?}", (red, green, blue));
    }
}

#[test]
fn the_background_decides_unless_the_setting_does() {
    for (setting, light, dark) in [
        ("system", Some("system"), Some("system")),
        ("mine", Some("mine"), Some("mine")),
        ("day/night", Some("day"), Some("night")),
        (" day / night ", Some("day"), Some("night")),
        ("a/b/c", None, None),
        ("a/", None, None),
        ("/b", None, None),
    ] {
        assert_eq!(choose(setting, Backdrop::Light), light, "{setting:?}");
        assert_eq!(choose(setting, Backdrop::Dark), dark, "{setting:?}");
    }
}

#[test]
fn a_background_is_dark_or_light() {
    use Backdrop::{Dark, Light};
    for (value, expected) in [
        ("15;0", Some(Dark)),
        ("0;15", Some(Light)),
        ("0;default;7", Some(Light)),
        ("0;8", Some(Dark)),
        ("12;default", Some(Dark)),
        ("default", None),
        ("", None),
        ("0;999", Some(Dark)),
    ] {
        assert_eq!(Backdrop::of_variable(value), expected, "{value:?}");
    }
    assert_eq!(Backdrop::of(30, 30, 30), Dark);
    assert_eq!(Backdrop::of(250, 245, 230), Light);
}

fn luminance(color: Color) -> f64 {
    let Color::Rgb(red, green, blue) = color else { panic!("{color:?}") };
    let linear = |channel: u8| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

fn contrast(a: Color, b: Color) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[test]
fn our_own_themes_can_be_read() {
    use Role::*;
    for (theme, paper) in
        [(Theme::dark(), Color::Rgb(0x1e, 0x1e, 0x1e)), (Theme::light(), Color::Rgb(0xff, 0xff, 0xff))]
    {
        for role in Role::ALL.into_iter().filter(|role| !role.is_background()) {
            let steps_back = matches!(role, BorderMuted | ThinkingOff | ScrollbarTrack);
            let least = if steps_back { 2.5 } else { 4.5 };
            let found = contrast(theme.color(role), paper);
            assert!(found >= least, "{} {}: {found:.2}", theme.name, role.name());
        }
        for (text, behind) in [
            (UserMessageText, UserMessageBg),
            (CustomMessageText, CustomMessageBg),
            (CustomMessageLabel, CustomMessageBg),
            (ToolTitle, ToolPendingBg),
            (ToolTitle, ToolSuccessBg),
            (ToolTitle, ToolErrorBg),
            (ToolOutput, ToolPendingBg),
            (ToolOutput, ToolSuccessBg),
            (ToolOutput, ToolErrorBg),
            (ToolDiffAdded, ToolSuccessBg),
            (ToolDiffRemoved, ToolSuccessBg),
            (Error, ToolErrorBg),
            (Text, SelectedBg),
            (Accent, SelectedBg),
            (SearchMatchText, SearchMatchBg),
        ] {
            let found = contrast(theme.color(text), theme.color(behind));
            assert!(found >= 4.5, "{} {} on {}: {found:.2}", theme.name, text.name(), behind.name());
        }
    }
}

/// With fewer colours, states stay apart in the terminal's own colours, too.
#[test]
fn the_system_theme_tells_states_apart_at_every_depth() {
    for (front, ground) in [([220; 3], [20; 3]), ([30; 3], [250; 3])] {
        let palette = std::array::from_fn(|number| match number {
            1 | 9 => [205, 49, 49],
            2 | 10 => [13, 188, 121],
            _ => [128; 3],
        });
        let theme = system::Colors::new(front, ground, palette).theme();
        for depth in [Depth::True, Depth::Indexed, Depth::Sixteen] {
            let theme = theme.clone().within(depth);
            assert_ne!(theme.color(Role::Success), theme.color(Role::Error), "{depth:?}");
            if depth > Depth::Sixteen {
                let block = |role| theme.color(role);
                assert_ne!(block(Role::ToolSuccessBg), block(Role::ToolErrorBg), "{depth:?}");
            }
        }
    }
    let unknown = system::Colors::default().theme();
    assert_eq!(unknown.color(Role::Success), Color::Indexed(2));
    assert_eq!(unknown.color(Role::Error), Color::Indexed(1));
}
