//! A short hash for long ids, identical to the reference's, so that both programs send equal ids for a
//! session.

/// Two 32-bit hashes over the UTF-16 units of `text`, in base 36.
pub fn short(text: &str) -> String {
    let mut high: u32 = 0xdead_beef;
    let mut low: u32 = 0x41c6_ce57;
    for unit in text.encode_utf16() {
        high = (high ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        low = (low ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }
    let mix = |a: u32, b: u32| {
        (a ^ (a >> 16)).wrapping_mul(2_246_822_507) ^ (b ^ (b >> 13)).wrapping_mul(3_266_489_909)
    };
    high = mix(high, low);
    low = mix(low, high);
    base36(low) + &base36(high)
}

fn base36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(number % 36, 36));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn hashes_are_those_of_the_reference() {
        let cases = [
            ("", "k4n83c7h0j2b"),
            ("a", "m8735310ae7sx"),
            ("call_abc|item_123+/=", "n9jgzuegrxcz"),
            ("é😀", "102l7zrk951la"),
        ];
        for (text, hash) in cases {
            assert_eq!(short(text), hash, "{text}");
        }
    }
}
