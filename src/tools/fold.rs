//! Folds look-alike characters, so that a model's text matches a file's.
//!
//! A model types a straight quote where the file has a curly one, a plain space for a no-break space, a
//! composed letter for a letter and an accent. [`fold`] maps all of them to one form, for finding only:
//! folded text never reaches a file. The table is this module's own: spaces, quotes, dashes, fullwidth
//! forms, ligatures, dots, and the composed letters of Latin, Greek and Cyrillic.

use crate::base::order::Order;
use std::sync::OnceLock;

/// Emits the folded characters of `char`; `char` itself if it has no folded form.
pub fn fold(char: char, emit: &mut impl FnMut(char)) {
    match char {
        '\0'..='\u{7f}' => emit(char),
        _ if is_space(char) => emit(' '),
        '\u{2018}'..='\u{201b}' => emit('\''),
        '\u{201c}'..='\u{201f}' => emit('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => emit('-'),
        // The fullwidth forms lie in the order of ASCII.
        '\u{ff01}'..='\u{ff5e}' => emit(char::from_u32(char as u32 - 0xfee0).unwrap_or(char)),
        '\u{2025}' => "..".chars().for_each(emit),
        '\u{2026}' => "...".chars().for_each(emit),
        'Ĳ' => "IJ".chars().for_each(emit),
        'ĳ' => "ij".chars().for_each(emit),
        'ﬀ' => "ff".chars().for_each(emit),
        'ﬁ' => "fi".chars().for_each(emit),
        'ﬂ' => "fl".chars().for_each(emit),
        'ﬃ' => "ffi".chars().for_each(emit),
        'ﬄ' => "ffl".chars().for_each(emit),
        'ﬅ' | 'ﬆ' => "st".chars().for_each(emit),
        _ => decompose_char(char, emit),
    }
}

/// The text with composed letters decomposed, as macOS stores file names.
pub fn decompose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        decompose_char(char, &mut |part| out.push(part));
    }
    out
}

/// True for a space other than the ASCII space.
pub fn is_space(char: char) -> bool {
    matches!(char, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

/// True for a combining accent.
pub fn is_mark(char: char) -> bool {
    matches!(char, '\u{300}'..='\u{36f}')
}

fn decompose_char(char: char, emit: &mut impl FnMut(char)) {
    match lookup(char) {
        // At most two marks in this table, so the depth is at most two.
        Some((base, mark)) => {
            match lookup(base) {
                Some((inner, first)) => {
                    emit(inner);
                    emit(first);
                }
                None => emit(base),
            }
            emit(mark);
        }
        None => emit(char),
    }
}

/// The letter and the mark of which `char` is composed.
fn lookup(char: char) -> Option<(char, char)> {
    static SORTED: OnceLock<Vec<(char, char, char)>> = OnceLock::new();
    if !matches!(char, '\u{c0}'..='\u{24f}' | '\u{386}'..='\u{4ff}' | '\u{1e00}'..='\u{1eff}') {
        return None;
    }
    let sorted = SORTED.get_or_init(|| {
        let mut rows = Vec::new();
        for (mark, pairs) in COMPOSED {
            let mut chars = pairs.chars();
            while let (Some(base), Some(composed)) = (chars.next(), chars.next()) {
                rows.push((composed, base, *mark));
            }
        }
        rows.order();
        rows
    });
    let at = sorted.binary_search_by_key(&char, |row| row.0).ok()?;
    sorted.get(at).map(|&(_, base, mark)| (base, mark))
}

/// For each mark, pairs of a letter and its composed form (the canonical decompositions of Unicode).
#[rustfmt::skip]
const COMPOSED: &[(char, &str)] = &[
    ('\u{300}', "AÀEÈIÌOÒUÙaàeèiìoòuùÜǛüǜNǸnǹЕЀИЍеѐиѝĒḔēḕŌṐōṑWẀwẁÂẦâầĂẰăằÊỀêềÔỒôồƠỜơờƯỪưừYỲyỳ"),
    ('\u{301}', "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýCĆcćLĹlĺNŃnńRŔrŕSŚsśZŹzźÜǗüǘGǴgǵÅǺåǻÆǼæǽØǾøǿΑΆΕΈΗΉΙΊΟΌΥΎΩΏϊΐαάεέηήιίϋΰοόυύωώГЃКЌгѓкќÇḈçḉĒḖēḗÏḮïḯKḰkḱMḾmḿÕṌõṍŌṒōṓPṔpṕŨṸũṹWẂwẃÂẤâấĂẮăắÊẾêếÔỐôốƠỚơớƯỨưứ"),
    ('\u{302}', "AÂEÊIÎOÔUÛaâeêiîoôuûCĈcĉGĜgĝHĤhĥJĴjĵSŜsŝWŴwŵYŶyŷZẐzẑẠẬạậẸỆẹệỌỘọộ"),
    ('\u{303}', "AÃNÑOÕaãnñoõIĨiĩUŨuũVṼvṽÂẪâẫĂẴăẵEẼeẽÊỄêễÔỖôỗƠỠơỡƯỮưữYỸyỹ"),
    ('\u{304}', "AĀaāEĒeēIĪiīOŌoōUŪuūÜǕüǖÄǞäǟȦǠȧǡÆǢæǣǪǬǫǭÖȪöȫÕȬõȭȮȰȯȱYȲyȳИӢиӣУӮуӯGḠgḡḶḸḷḹṚṜṛṝ"),
    ('\u{306}', "AĂaăEĔeĕGĞgğIĬiĭOŎoŏUŬuŭУЎИЙийуўЖӁжӂАӐаӑЕӖеӗȨḜȩḝẠẶạặ"),
    ('\u{307}', "CĊcċEĖeėGĠgġIİZŻzżAȦaȧOȮoȯBḂbḃDḊdḋFḞfḟHḢhḣMṀmṁNṄnṅPṖpṗRṘrṙSṠsṡŚṤśṥŠṦšṧṢṨṣṩTṪtṫWẆwẇXẊxẋYẎyẏſẛ"),
    ('\u{308}', "AÄEËIÏOÖUÜaäeëiïoöuüyÿYŸΙΪΥΫιϊυϋЕЁІЇеёіїАӒаӓӘӚәӛЖӜжӝЗӞзӟИӤиӥОӦоӧӨӪөӫЭӬэӭУӰуӱЧӴчӵЫӸыӹHḦhḧÕṎõṏŪṺūṻWẄwẅXẌxẍtẗ"),
    ('\u{309}', "AẢaảÂẨâẩĂẲăẳEẺeẻÊỂêểIỈiỉOỎoỏÔỔôổƠỞơởUỦuủƯỬưửYỶyỷ"),
    ('\u{30a}', "AÅaåUŮuůwẘyẙ"),
    ('\u{30b}', "OŐoőUŰuűУӲуӳ"),
    ('\u{30c}', "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzžAǍaǎIǏiǐOǑoǒUǓuǔÜǙüǚGǦgǧKǨkǩƷǮʒǯjǰHȞhȟ"),
    ('\u{30f}', "AȀaȁEȄeȅIȈiȉOȌoȍRȐrȑUȔuȕѴѶѵѷ"),
    ('\u{311}', "AȂaȃEȆeȇIȊiȋOȎoȏRȒrȓUȖuȗ"),
    ('\u{31b}', "OƠoơUƯuư"),
    ('\u{323}', "BḄbḅDḌdḍHḤhḥKḲkḳLḶlḷMṂmṃNṆnṇRṚrṛSṢsṣTṬtṭVṾvṿWẈwẉZẒzẓAẠaạEẸeẹIỊiịOỌoọƠỢơợUỤuụƯỰưựYỴyỵ"),
    ('\u{324}', "UṲuṳ"),
    ('\u{325}', "AḀaḁ"),
    ('\u{326}', "SȘsșTȚtț"),
    ('\u{327}', "CÇcçGĢgģKĶkķLĻlļNŅnņRŖrŗSŞsşTŢtţEȨeȩDḐdḑHḨhḩ"),
    ('\u{328}', "AĄaąEĘeęIĮiįUŲuųOǪoǫ"),
    ('\u{32d}', "DḒdḓEḘeḙLḼlḽNṊnṋTṰtṱUṶuṷ"),
    ('\u{32e}', "HḪhḫ"),
    ('\u{330}', "EḚeḛIḬiḭUṴuṵ"),
    ('\u{331}', "BḆbḇDḎdḏKḴkḵLḺlḻNṈnṉRṞrṟTṮtṯZẔzẕhẖ"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let mut out = String::new();
        for char in text.chars() {
            fold(char, &mut |part| out.push(part));
        }
        out
    }

    #[test]
    fn signs_that_look_alike_fold_to_one() {
        for (text, expected) in [
            ("plain \t\n text", "plain \t\n text"),
            ("\u{a0}\u{2003}\u{202f}\u{3000}", "    "),
            ("\u{2018}a\u{2019} \u{201c}b\u{201d}", "'a' \"b\""),
            ("a\u{2013}b\u{2014}c\u{2212}d", "a-b-c-d"),
            ("ｆ（ｘ）＝１！～", "f(x)=1!~"),
            ("ﬁ ﬄ …", "fi ffl ..."),
            ("漢字 ß Ω я 😀", "漢字 ß Ω я 😀"),
        ] {
            assert_eq!(folded(text), expected);
            assert_eq!(folded(&folded(text)), expected, "folding again changes nothing");
        }
    }

    #[test]
    fn composed_letters_fold_to_letter_and_marks() {
        for (composed, apart) in [
            ("é", "e\u{301}"),
            ("Å", "A\u{30a}"),
            ("ệ", "e\u{323}\u{302}"),
            ("ǖ", "u\u{308}\u{304}"),
            ("й", "и\u{306}"),
            ("ΐ", "ι\u{308}\u{301}"),
        ] {
            assert_eq!(decompose(composed), apart);
            assert_eq!(folded(composed), folded(apart));
        }
    }

    #[test]
    fn the_table_names_each_letter_once_and_in_pairs() {
        let mut seen = std::collections::HashSet::new();
        for (mark, pairs) in COMPOSED {
            assert!(is_mark(*mark));
            assert_eq!(pairs.chars().count() % 2, 0, "{mark:?}");
            for composed in pairs.chars().skip(1).step_by(2) {
                assert!(seen.insert(composed), "{composed:?} twice");
                assert!(lookup(composed).is_some(), "{composed:?} outside the ranges");
                let mut depth = 0;
                let mut base = composed;
                while let Some((inner, _)) = lookup(base) {
                    base = inner;
                    depth += 1;
                }
                assert!(depth <= 2, "{composed:?} has {depth} marks");
            }
        }
        assert_eq!(seen.len(), 569);
    }
}
