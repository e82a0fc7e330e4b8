//! Recognizes a prompt that was expanded from `/skill:name`.

/// The parts of an expanded skill prompt.
pub struct CalledSkill<'a> {
    pub name: &'a str,
    pub content: &'a str,
    /// The user's text after the name.
    pub said: &'a str,
}

impl<'a> CalledSkill<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, rest) = text.strip_prefix("<skill name=\"")?.split_once('"')?;
        let (_, rest) = rest.strip_prefix(" location=\"")?.split_once("\">\n")?;
        let (content, said) = rest.split_once("\n</skill>")?;
        (said.is_empty() || said.starts_with("\n\n")).then_some(Self { name, content, said: said.trim() })
    }

    /// Returns the prompt as the user typed it.
    pub fn typed(&self) -> String {
        format!("/skill:{} {}", self.name, self.said).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_called_skill_is_told_from_what_was_said_with_it() {
        let text = "<skill name=\"a\" location=\"/s\">\nBody\n</skill>\n\ndo it";
        let skill = CalledSkill::parse(text).unwrap();
        assert_eq!((skill.name, skill.content, skill.said), ("a", "Body", "do it"));
        assert_eq!(skill.typed(), "/skill:a do it");
        let alone = CalledSkill::parse("<skill name=\"a\" location=\"/s\">\nBody\n</skill>").unwrap();
        assert_eq!(alone.typed(), "/skill:a");
        for other in ["x", "<skill name=\"a\">", "<skill name=\"a\" location=\"b\">\nx"] {
            assert!(CalledSkill::parse(other).is_none(), "{other}");
        }
    }
}
