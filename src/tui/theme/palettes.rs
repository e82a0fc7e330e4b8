//! Themes by well-known palettes of terminals.
//!
//! A palette is foreground, background and the sixteen colours of a terminal; the theme is made of them as `system`
//! is of the terminal's own, so that text can be read on the palette's background.

use super::Theme;
use super::system::{Colors, rgb};
use crate::tui::style::Color;

/// Name, then foreground, background and the sixteen colours as 0xRRGGBB.
type Palette = (&'static str, [u32; 18]);

#[rustfmt::skip]
const PALETTES: [Palette; 12] = [
    ("catppuccin-latte", [0x4c4f69, 0xeff1f5, 0x5c5f77, 0xd20f39, 0x40a02b, 0xdf8e1d, 0x1e66f5, 0xea76cb, 0x179299, 0xacb0be, 0x6c6f85, 0xd20f39, 0x40a02b, 0xdf8e1d, 0x1e66f5, 0xea76cb, 0x179299, 0xbcc0cc]),
    ("catppuccin-mocha", [0xcdd6f4, 0x1e1e2e, 0x45475a, 0xf38ba8, 0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xf5c2e7, 0x94e2d5, 0xbac2de, 0x585b70, 0xf38ba8, 0xa6e3a1, 0xf9e2af, 0x89b4fa, 0xf5c2e7, 0x94e2d5, 0xa6adc8]),
    ("dracula", [0xf8f8f2, 0x282a36, 0x21222c, 0xff5555, 0x50fa7b, 0xf1fa8c, 0xbd93f9, 0xff79c6, 0x8be9fd, 0xf8f8f2, 0x6272a4, 0xff6e6e, 0x69ff94, 0xffffa5, 0xd6acff, 0xff92df, 0xa4ffff, 0xffffff]),
    ("everforest", [0xd3c6aa, 0x2d353b, 0x475258, 0xe67e80, 0xa7c080, 0xdbbc7f, 0x7fbbb3, 0xd699b6, 0x83c092, 0xd3c6aa, 0x859289, 0xe67e80, 0xa7c080, 0xdbbc7f, 0x7fbbb3, 0xd699b6, 0x83c092, 0xd3c6aa]),
    ("gruvbox-dark", [0xebdbb2, 0x282828, 0x282828, 0xcc241d, 0x98971a, 0xd79921, 0x458588, 0xb16286, 0x689d6a, 0xa89984, 0x928374, 0xfb4934, 0xb8bb26, 0xfabd2f, 0x83a598, 0xd3869b, 0x8ec07c, 0xebdbb2]),
    ("gruvbox-light", [0x3c3836, 0xfbf1c7, 0xfbf1c7, 0xcc241d, 0x98971a, 0xd79921, 0x458588, 0xb16286, 0x689d6a, 0x7c6f64, 0x928374, 0x9d0006, 0x79740e, 0xb57614, 0x076678, 0x8f3f71, 0x427b58, 0x3c3836]),
    ("monokai", [0xf8f8f2, 0x272822, 0x272822, 0xf92672, 0xa6e22e, 0xf4bf75, 0x66d9ef, 0xae81ff, 0xa1efe4, 0xf8f8f2, 0x75715e, 0xf92672, 0xa6e22e, 0xf4bf75, 0x66d9ef, 0xae81ff, 0xa1efe4, 0xf9f8f5]),
    ("nord", [0xd8dee9, 0x2e3440, 0x3b4252, 0xbf616a, 0xa3be8c, 0xebcb8b, 0x81a1c1, 0xb48ead, 0x88c0d0, 0xe5e9f0, 0x4c566a, 0xbf616a, 0xa3be8c, 0xebcb8b, 0x81a1c1, 0xb48ead, 0x8fbcbb, 0xeceff4]),
    ("one-dark", [0xabb2bf, 0x282c34, 0x282c34, 0xe06c75, 0x98c379, 0xe5c07b, 0x61afef, 0xc678dd, 0x56b6c2, 0xabb2bf, 0x5c6370, 0xe06c75, 0x98c379, 0xe5c07b, 0x61afef, 0xc678dd, 0x56b6c2, 0xffffff]),
    ("rose-pine", [0xe0def4, 0x191724, 0x26233a, 0xeb6f92, 0x31748f, 0xf6c177, 0x9ccfd8, 0xc4a7e7, 0xebbcba, 0xe0def4, 0x6e6a86, 0xeb6f92, 0x31748f, 0xf6c177, 0x9ccfd8, 0xc4a7e7, 0xebbcba, 0xe0def4]),
    ("solarized-light", [0x657b83, 0xfdf6e3, 0x073642, 0xdc322f, 0x859900, 0xb58900, 0x268bd2, 0xd33682, 0x2aa198, 0xeee8d5, 0x002b36, 0xcb4b16, 0x586e75, 0x657b83, 0x839496, 0x6c71c4, 0x93a1a1, 0xfdf6e3]),
    ("tokyo-night", [0xc0caf5, 0x1a1b26, 0x15161e, 0xf7768e, 0x9ece6a, 0xe0af68, 0x7aa2f7, 0xbb9af7, 0x7dcfff, 0xa9b1d6, 0x414868, 0xf7768e, 0x9ece6a, 0xe0af68, 0x7aa2f7, 0xbb9af7, 0x7dcfff, 0xc0caf5]),
];

/// Names of the themes, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    PALETTES.iter().map(|(name, _)| *name)
}

/// Makes the theme with this name.
pub fn find(name: &str) -> Option<Theme> {
    let (name, colors) = PALETTES.iter().find(|(known, _)| *known == name)?;
    let parts = |color: u32| {
        let [_, red, green, blue] = color.to_be_bytes();
        [red, green, blue]
    };
    let [foreground, background, palette @ ..] = colors.map(parts);
    let mut theme = Colors::new(foreground, background, palette).theme();
    theme.name = (*name).to_owned();
    for color in &mut theme.colors {
        match *color {
            // The terminal has colours of its own.
            Color::Default => *color = rgb(foreground),
            Color::Indexed(number) => {
                *color = palette.get(usize::from(number)).map_or(*color, |told| rgb(*told));
            }
            Color::Rgb(..) => {}
        }
    }
    Some(theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme::{Role, luminance};

    #[test]
    fn text_can_be_read_in_every_palette() {
        for (name, colors) in PALETTES {
            let theme = find(name).unwrap();
            let light = |color: Color| match color {
                Color::Rgb(red, green, blue) => luminance([red, green, blue]),
                other => panic!("{name}: {other:?}"),
            };
            let [_, red, green, blue] = colors[1].to_be_bytes();
            let ground = luminance([red, green, blue]);
            for role in
                [Role::Text, Role::Accent, Role::Error, Role::Success, Role::Warning, Role::SyntaxKeyword]
            {
                let ink = light(theme.color(role));
                let contrast = (ink.max(ground) + 0.05) / (ink.min(ground) + 0.05);
                assert!(contrast >= 4.5, "{name} {}: {contrast}", role.name());
            }
            assert!(Role::ALL.iter().all(|role| light(theme.color(*role)) >= 0.0));
        }
        assert!(find("dark").is_none());
        assert!(names().is_sorted());
    }
}
