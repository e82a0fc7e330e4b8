//! Capabilities of a model, recognized by its name, since the API does not report them.

/// Aliases for the newest models, which have at least [`NEWEST_VERSION`].
const NEWEST: [&str; 2] = ["gemini-flash-latest", "gemini-flash-lite-latest"];
const NEWEST_VERSION: u32 = 3;

/// The first number in the name of a Gemini model.
fn version(id: &str) -> Option<u32> {
    let id = id.to_ascii_lowercase();
    let rest = id.strip_prefix("gemini")?;
    let rest = rest.strip_prefix("-live").unwrap_or(rest);
    let rest = rest.strip_prefix('-')?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

/// True if calls and results must have ids. Other models reject ids.
pub fn takes_call_ids(id: &str) -> bool {
    id.starts_with("claude-") || id.starts_with("gpt-oss-") || version(id).is_some_and(|version| version >= 3)
}

/// True if images are accepted inside the result of a call.
pub fn takes_images_in_results(id: &str) -> bool {
    version(id).is_none_or(|version| version >= 3)
}

/// True if calls can be forced to match the schemas of functions.
pub fn takes_strict_tools(id: &str) -> bool {
    version(id).is_some_and(|version| version >= 3)
}

/// True if the model rejects unsigned calls in the conversation.
pub fn wants_signatures(id: &str) -> bool {
    let known = version(id).or_else(|| NEWEST.contains(&id).then_some(NEWEST_VERSION));
    known.is_some_and(|version| version >= 3)
}

/// True if thinking is requested by a level, not by a number of tokens: Gemini 3 (`gemini-3-pro`,
/// `gemini-3.1-flash-lite`), Gemini 4 and later, and Gemma 4, with any prefix.
pub fn thinks_by_level(id: &str) -> bool {
    let id = id.to_ascii_lowercase();
    NEWEST.contains(&id.as_str())
        || id.contains("gemma-4")
        || id.contains("gemma4")
        || id.match_indices("gemini-").any(|(at, name)| {
            let mut digits = id.get(at + name.len()..).unwrap_or_default().chars();
            let next = digits.next();
            next.is_some_and(|digit| ('4'..='9').contains(&digit))
                || (next.is_some_and(|digit| ('1'..='3').contains(&digit))
                    && digits.next().is_some_and(|digit| digit.is_ascii_digit()))
        })
        || id.match_indices("gemini-3").any(|(at, name)| {
            let rest = id.get(at + name.len()..).unwrap_or_default();
            let minor = |rest: &str| {
                let digits = rest.strip_prefix('.')?;
                let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit());
                (rest.len() < digits.len()).then(|| rest.to_owned())
            };
            let rest = minor(rest).unwrap_or_else(|| rest.to_owned());
            rest.starts_with("-pro") || rest.starts_with("-flash")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_told_by_name() {
        // id, call ids, images in results, thinks by level, wants signatures
        let cases = [
            ("gemini-2.5-pro", false, false, false, false),
            ("gemini-2.5-flash-lite", false, false, false, false),
            ("gemini-1.5-pro", false, false, false, false),
            ("gemini-3-pro-preview", true, true, true, true),
            ("gemini-3.1-flash-lite-preview", true, true, true, true),
            ("Gemini-3.8-Flash", true, true, true, true),
            ("gemini-live-3-flash", true, true, false, true),
            ("gemini-3-ultra", true, true, false, true),
            ("gemini-3.-pro", true, true, false, true),
            ("gemini-10-pro", true, true, true, true),
            ("gemini-4-argon", true, true, true, true),
            ("gemini-flash-latest", false, true, true, true),
            ("gemini-flash-lite-latest", false, true, true, true),
            ("gemma-4-31b-it", false, true, true, false),
            ("google/gemma4-e4b", false, true, true, false),
            ("google/gemini-3-pro", false, true, true, false),
            ("claude-opus-4-5", true, true, false, false),
            ("gpt-oss-120b", true, true, false, false),
            ("deep-research-preview-04-2026", false, true, false, false),
            ("gemini", false, true, false, false),
            ("gemini-", false, true, false, false),
            ("gemini-99999999999999999999", false, true, true, false),
        ];
        for (id, ids, images, level, signatures) in cases {
            let found =
                (takes_call_ids(id), takes_images_in_results(id), thinks_by_level(id), wants_signatures(id));
            assert_eq!(found, (ids, images, level, signatures), "{id}");
        }
    }
}
