//! Times in the format of session files: `2024-12-03T14:00:00.000Z`, always UTC with milliseconds.

const DAY_MS: u64 = 86_400_000;

/// `ms` since 1970 as ISO 8601: years past 9999 with a sign and at least six digits.
pub fn iso(ms: u64) -> String {
    let (year, month, day) = date(ms / DAY_MS);
    let (ms, seconds) = (ms % 1000, ms / 1000);
    let (second, minute, hour) = (seconds % 60, seconds / 60 % 60, seconds / 3600 % 24);
    let year = if year > 9999 { format!("+{year:06}") } else { format!("{year:04}") };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Latest year of a time, as in JavaScript.
const YEAR_MAX: u64 = 275_760;

/// The milliseconds since 1970 of an ISO 8601 time with a zone; a fraction may have any length.
pub fn parse_iso(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    let mut date = date.strip_prefix('+').unwrap_or(date).splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if !(1970..=YEAR_MAX).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (time, zone_minutes) = match time.strip_suffix('Z') {
        Some(time) => (time, 0),
        None => {
            let at = time.rfind(['+', '-'])?;
            let (time, zone) = time.split_at_checked(at)?;
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = i64::try_from(number(hours)? * 60 + number(minutes)?).ok()?;
            (time, if zone.starts_with('-') { -minutes } else { minutes })
        }
    };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut time = time.splitn(3, ':').map(number);
    let (hour, minute, second) = (time.next()??, time.next()??, time.next()??);
    let digits = fraction.bytes().chain(*b"00").take(3);
    let ms = digits.fold(0, |ms, digit| ms * 10 + u64::from(digit.wrapping_sub(b'0')));
    if hour > 24 || minute > 59 || second > 60 || number(fraction).is_none() {
        return None;
    }
    let local = days(year, month, day) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    local.checked_add_signed(-zone_minutes * 60_000)
}

/// Parses digits, at most as many as sums cannot overflow.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// The date of a day counted from 1970-01-01. Years begin in March here, so that the leap day is the
/// last one; 146,097 days make 400 years.
fn date(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (year, day) = (era * 400 + year, day - (153 * month + 2) / 5 + 1);
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

/// The inverse of [`date`].
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5 + day - 1;
    (era * 146_097 + year * 365 + year / 4 - year / 100 + day).saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_written_and_read() {
        let rows: &[(u64, &str)] = &[
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_123, "2000-02-29T00:00:00.123Z"),
            (1_733_234_400_000, "2024-12-03T14:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
        ];
        for (ms, text) in rows {
            assert_eq!(iso(*ms), *text);
            assert_eq!(parse_iso(text), Some(*ms));
        }
    }

    #[test]
    fn other_forms_are_read() {
        let rows: &[(&str, Option<u64>)] = &[
            ("1970-01-01T00:00:01Z", Some(1000)),
            ("1970-01-01T00:00:01.5Z", Some(1500)),
            ("1970-01-01T00:00:01.123456Z", Some(1123)),
            ("1970-01-01T02:00:00.000+02:00", Some(0)),
            ("1969-12-31T22:00:00-02:00", None),
            ("1970-01-01T00:00:00+02:00", None),
            ("1970-01-01", None),
            ("1970-13-01T00:00:00Z", None),
            ("1970-01-01T00:00:00", None),
            ("1970-01-01T00:00:0äZ", None),
            ("10000-01-01T00:00:00Z", Some(253_402_300_800_000)),
            ("+275761-01-01T00:00:00Z", None),
            ("99999999999999999999-01-01T00:00:00Z", None),
            ("", None),
        ];
        for (text, ms) in rows {
            assert_eq!(parse_iso(text), *ms, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_time_survives(ms in 0u64..8_640_000_000_000_000) {
            proptest::prop_assert_eq!(parse_iso(&iso(ms)), Some(ms));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}") {
            parse_iso(&text);
        }
    }
}
