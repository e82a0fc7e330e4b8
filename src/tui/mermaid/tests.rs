//! Golden drawings, what is not drawn, and invariants for any text.

use super::text::PARTS_MAX;
use super::*;
use crate::tui::width;
use proptest::prelude::*;

#[track_caller]
fn check(source: &str, expected: &[&str]) {
    assert_eq!(draw(source, 80, false).unwrap_or_default(), expected, "{source}");
}

#[track_caller]
fn check_plain(source: &str, expected: &[&str]) {
    assert_eq!(draw(source, 80, true).unwrap_or_default(), expected, "{source}");
}

#[test]
fn flowcharts() {
    check(
        "graph TD\nA[Start] --> B{Is it ok?}\nB -->|Yes| C[\"Do<br/>it\"]\nB -- No --> D([Stop])",
        &[
            "   ┌───────┐",
            "   │ Start │",
            "   └───┬───┘",
            "       │",
            "       ▼",
            " ╱───────────╲",
            " │ Is it ok? │",
            " ╲─────┬─────╱",
            "  ┌────┴────┐",
            " Yes        No",
            "  │         │",
            "  ▼         ▼",
            "┌────┐   ╭──────╮",
            "│ Do │   │ Stop │",
            "│ it │   ╰──────╯",
            "└────┘",
        ],
    );
    check(
        "flowchart LR;A --> B & C --> D; D -.-> A; D == go ==> E[x]",
        &[
            "         ┌───┐",
            "      ┌─▶│ B ├─┐",
            "      │  └───┘ │",
            "┌───┐ │        │  ┌───┐",
            "│   │ │  ┌───┐ │  │   │          ┌───┐",
            "│ A ├─┴─▶│ C ├─┴─▶│ D ├━━━ go ━━▶│ x │",
            "│   │◀╌┐ └───┘  ┌╌┤   │          └───┘",
            "└───┘  ┊        ┊ └───┘",
            "       └╌╌╌╌╌╌╌╌┘",
        ],
    );
    check(
        "flowchart BT\nsubgraph api [The API]\nA o--x B\nend\nC --- A\nC ~~~ B\nclassDef x fill:#f9f\nA --> A",
        &[
            "     ┌───────────┐",
            "     │     B     │",
            "     │ [The API] │",
            "     └───────────┘",
            "           ×",
            "      ┌────┘",
            "      ○",
            "┌───────────┐",
            "│     A     │",
            "│ [The API] │",
            "│     ↻     │",
            "└─────┬─────┘",
            "      └────┐",
            "         ┌─┴─┐",
            "         │ C │",
            "         └───┘",
        ],
    );
    check_plain(
        "graph RL\nA{ok?} -->|yes| B(b)",
        &[".---.           /-----\\", "| b |<-- yes ---+ ok? |", "'---'           \\-----/"],
    );
}

#[test]
fn edges_meet_only_where_it_is_clear_which_leads_where() {
    check(
        "graph TD\nA --> C\nA --> D\nB --> C\nB --> D",
        &[
            "  ┌───┐   ┌───┐",
            "  │ A │   │ B │",
            "  └─┬─┘   └─┬─┘",
            "   ┌┴───────┼┐",
            "   │ ┌──────┴┼─┐",
            "   ▼ ▼       ▼ ▼",
            "┌─────┐   ┌─────┐",
            "│  C  │   │  D  │",
            "└─────┘   └─────┘",
        ],
    );
    check(
        "graph TD\nA --> B\nB --> A\nB --> C\nA --> C",
        &[
            "┌─────┐",
            "│  A  │",
            "└──┬──┘",
            "   │ ▲",
            "   ├─┼────┐",
            "   ▼ │    │",
            "┌────┴┐   │",
            "│  B  │   │",
            "└──┬──┘   │",
            "   └───┐  │",
            "       ├──┘",
            "       ▼",
            "     ┌───┐",
            "     │ C │",
            "     └───┘",
        ],
    );
    check(
        "graph LR\nA --> C\nA --> D\nB --> C\nB --> D",
        &[
            "         ┌───┐",
            "         │   │",
            "┌───┐ ┌─▶│ C │",
            "│ A ├─┤┌▶│   │",
            "└───┘ ││ └───┘",
            "      ││",
            "┌───┐ ││ ┌───┐",
            "│ B ├─┼┤ │   │",
            "└───┘ └┼▶│ D │",
            "       └▶│   │",
            "         └───┘",
        ],
    );
}

#[test]
fn a_graph_that_is_too_wide_is_turned() {
    let source = "graph LR\nA[The first] --> B[The second]";
    let vertical = draw("graph TD\nA[The first] --> B[The second]", 80, false);
    assert_eq!(draw(source, 20, false), vertical);
    assert_eq!(draw(source, 8, false), None);
}

#[test]
fn states() {
    check(
        "stateDiagram-v2\n[*] --> Idle\nIdle --> Run : start\nRun --> Idle : stop\nRun --> Run : tick\nRun --> [*]\nstate \"At rest\" as Idle",
        &[
            "       ●",
            "       │",
            "       ▼",
            "  ╭─────────╮",
            "  │ At rest │",
            "  ╰────┬────╯",
            "       │ ▲",
            "   ┌───┘ └──┐",
            " start     stop",
            "   └────┐ ┌─┘",
            "        ▼ │",
            "    ╭─────┴──╮",
            "    │  Run   │",
            "    │ ↻ tick │",
            "    ╰───┬────╯",
            "        │",
            "        ▼",
            "        ◉",
        ],
    );
    check_plain(
        "stateDiagram-v2\ndirection LR\n[*] --> A",
        &["          .---.", "(start)-->| A |", "          '---'"],
    );
}

#[test]
fn classes() {
    check(
        "classDiagram\nAnimal <|-- Duck\nAnimal <|.. Fish\nAnimal : +List~int~ ages\nclass Duck {\n<<bird>>\n+String beak\n+swim()\n}\nDuck \"1\" *-- \"2\" Leg : has",
        &[
            "     ┌─────────────────┐",
            "     │     Animal      │",
            "     ├─────────────────┤",
            "     │ +List<int> ages │",
            "     └─────────────────┘",
            "              △ △",
            "       ┌──────┘ └╌╌╌╌╌┐",
            "┌──────┴───────┐   ┌──┴───┐",
            "│    «bird»    │   │ Fish │",
            "│     Duck     │   └──────┘",
            "├──────────────┤",
            "│ +String beak │",
            "├──────────────┤",
            "│   +swim()    │",
            "└──────────────┘",
            "       ◆",
            "    1 has 2",
            "       │",
            "    ┌──┴──┐",
            "    │ Leg │",
            "    └─────┘",
        ],
    );
}

#[test]
fn sequences() {
    check(
        "sequenceDiagram\nautonumber\nparticipant A as Alice\nA->>+Bob: Hello\nalt is well\nBob-->>-A: Hi, how are you?\nelse is not\nBob->>Bob: think\nend\nNote over A,Bob: done\nNote right of Bob: x\nA-xCarl: bye",
        &[
            "┌───────┐               ┌─────┐      ┌──────┐",
            "│ Alice │               │ Bob │      │ Carl │",
            "└───┬───┘               └──┬──┘      └───┬──┘",
            "    │       1. Hello       │             │",
            "    ├─────────────────────▶│             │",
            "╌╌ alt is well ╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌",
            "    │ 2. Hi, how are you?  │             │",
            "    │◀╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┤             │",
            "╌╌ else is not ╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌",
            "    │                      │ 3. think    │",
            "    │                      ├───┐         │",
            "    │                      │◀──┘         │",
            "╌╌ end alt ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌╌╌╌╌╌╌╌╌╌┼╌╌╌╌",
            "  ┌──────────────────────────┐           │",
            "  │           done           │           │",
            "  └──────────────────────────┘           │",
            "    │                      │ ┌───┐       │",
            "    │                      │ │ x │       │",
            "    │                      │ └───┘       │",
            "    │               4. bye │             │",
            "    ├──────────────────────┼────────────×│",
            "    │                      │             │",
        ],
    );
    check_plain(
        "sequenceDiagram\nA->>B: 日本\nNote left of B: n\nB->>B: self",
        &[
            "+---+   +---+",
            "| A |   | B |",
            "+-+-+   +-+-+",
            "  | 日本  |",
            "  +------>|",
            "  | +---+ |",
            "  | | n | |",
            "  | +---+ |",
            "  |       | self",
            "  |       +---+",
            "  |       |<--+",
            "  |       |",
        ],
    );
}

#[test]
fn pies() {
    check(
        "pie title Pets\n\"Dogs\" : 386\n\"Cats\" : 85.5\n\"Rats\" : 15",
        &[
            "Pets",
            "",
            "Dogs   79.3%  ████████████████████████████████████████",
            "Cats   17.6%  ████████▉",
            "Rats    3.1%  █▌",
        ],
    );
    check_plain(
        "pie showData\ntitle Pets\n\"Dogs\" : 3\n\"日本\" : 1",
        &[
            "Pets",
            "",
            "Dogs   75.0%  (3)  ########################################",
            "日本   25.0%  (1)  #############",
        ],
    );
}

#[test]
fn what_is_not_known_is_not_drawn() {
    for source in [
        "",
        "gantt\ntitle x",
        "graph XY\nA --> B",
        "graph TD",
        "graph TD\nA -->",
        "graph TD\nA[open --> B",
        "graph TD\nA@{ shape: cyl }",
        "graph TD\nsubgraph one\nA --> B",
        "graph TD\nsubgraph one\nA\nend\nB --> one",
        "graph TD\nend",
        "stateDiagram-v2\nstate A {\nB --> C\n}",
        "stateDiagram-v2\nnote right of A : x",
        "classDiagram\nclass A {\n+int x",
        "classDiagram\nnote \"x\"",
        "sequenceDiagram",
        "sequenceDiagram\nA->>B: x\nloop",
        "sequenceDiagram\nA->>B: x\nelse\n",
        "sequenceDiagram\nbox Group\nA->>B: x\nend",
        "pie\n\"a\" : -1",
        "pie\n\"a\" : 0",
        "pie\n\"a\" : inf",
        "pie\na : 1",
    ] {
        assert_eq!(draw(source, 80, false), None, "{source:?}");
    }
    let many: String = (0..=PARTS_MAX).map(|at| format!("A{at} --> B{at}\n")).collect();
    assert_eq!(draw(&format!("graph LR\n{many}"), 200, false), None);
    assert_eq!(draw(&format!("graph LR\nA --> B\n%%{}", "x".repeat(BYTES_MAX)), 200, false), None);
}

/// A diagram of likely statements.
fn diagram() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        Just("graph TD"),
        Just("flowchart LR"),
        Just("graph BT"),
        Just("graph RL"),
        Just("stateDiagram-v2"),
        Just("classDiagram"),
        Just("sequenceDiagram"),
        Just("pie showData"),
    ];
    let line = prop_oneof![
        6 => "[A-F](\\[日本 x\\]|\\{ok\\?\\}|\\(\\(e\\)\\)|)( --> | -->\\|yes 日\\|| -.-> | == a b ==> |---| & |~~~)[A-F]",
        3 => "[A-D](->>|-->>|-x|<<->>|->)[A-D]: [a-z é👍]{0,9}",
        2 => "[A-F] (<\\|--|\\*--|--o|..>|-->) [A-F]( : [a-z]{1,5}|)",
        1 => "(Note (over|left of|right of) [A-C]: [a-z ]{1,20}|Note over A,D: x|loop x|alt y|else z|end|autonumber)",
        1 => "(\"[a-z]{1,4}\" : [0-9]{1,3}|title a b|subgraph s|end|A : int b|\\[\\*\\] --> A|B --> \\[\\*\\])",
        1 => "\\PC{0,12}",
    ];
    (head, prop::collection::vec(line, 0..14))
        .prop_map(|(head, lines)| format!("{head}\n{}", lines.join("\n")))
}

proptest! {
    #[test]
    fn no_row_is_wider_than_the_width(source in diagram(), width in 0_usize..90, is_plain in any::<bool>()) {
        let rows = draw(&source, width, is_plain).unwrap_or_default();
        prop_assert!(rows.len() <= 1000);
        for row in rows {
            prop_assert!(width::width(&row) <= width, "{row:?} at {width} in {source:?}");
            prop_assert!(!row.contains(char::is_control));
        }
    }

    #[test]
    fn a_graph_is_drawn_with_all_its_nodes(
        edges in prop::collection::vec((0..8_u8, 0..8_u8), 1..16),
        is_across in any::<bool>(),
    ) {
        let head = if is_across { "graph LR" } else { "graph TD" };
        let lines: Vec<String> = edges.iter().map(|(from, to)| format!("N{from} --> N{to}")).collect();
        let rows = draw(&format!("{head}\n{}", lines.join("\n")), 300, false).unwrap_or_default();
        let text = rows.join("\n");
        for (from, to) in edges {
            let is_whole = [from, to].iter().all(|node| text.contains(&format!("N{node}")));
            prop_assert!(is_whole || rows.is_empty());
        }
    }
}

/// Checks that a drawing has all of these texts, and none of those.
#[track_caller]
fn shows(source: &str, texts: &[&str], others: &[&str]) {
    let drawn = draw(source, 100, false).unwrap_or_default().join("\n");
    for text in texts {
        assert!(drawn.contains(text), "{text} in\n{drawn}");
    }
    for text in others {
        assert!(!drawn.contains(text), "{text} in\n{drawn}");
    }
}

#[track_caller]
fn is_not_drawn(source: &str) {
    assert_eq!(draw(source, 100, false), None, "{source}");
}

#[test]
fn subgraphs_are_named_by_their_nodes() {
    shows("graph TD\nA --> B\nsubgraph S [My Group]\nA\nB\nend", &["[My Group]"], &[]);
    shows("graph TD\nsubgraph Cloud\nsubgraph VPC\nA --> B\nend\nend", &["[Cloud / VPC]"], &[]);
    is_not_drawn("graph TD\nA --> B\nsubgraph Empty\nend");
    is_not_drawn("graph TD\nsubgraph one [Same]\nA --> B\nend\nsubgraph two [Same]\nend");
}

#[test]
fn texts_are_shown_as_a_browser_would() {
    let escapes = "A[\"x &amp; &#35;1 #9829; #quot;y#quot; a < b\"]";
    shows(
        &format!(
            "graph LR\n{escapes} -->|1 &lt; 2| B[\"<b>bold</b> <span style='x'>s</span><BR />end\"]; B --> C"
        ),
        &["x & #1 ♥ \"y\" a < b", "1 < 2", " bold s ", " end ", "C"],
        &["BR", "span", ";"],
    );
    shows("graph LR\nA[one\\ntwo] --> B[a &lt;b&gt; c]", &["│ one ", "│ two │", "a <b> c"], &[]);
    // There it is no line end.
    shows("sequenceDiagram\nA->>B: C:\\new &amp; #unknown;", &["C:\\new & #unknown;"], &[]);
    shows("pie\n\"C:\\new\" : 1", &["C:\\new"], &[]);
}

#[test]
fn generic_classes_are_one_class() {
    let source = "classDiagram\nclass Square~Shape~{\nint id\n}\nSquare : draw()\nSquare <|-- Big";
    shows(source, &["Square<Shape>", "draw()", "Big"], &["│ Square "]);
    shows(
        "classDiagram\nA : +map(List~int~ a) List~str~\nA : ~inner(List~int~ a)\nA : List~List~int~~ x",
        &["+map(List<int> a) List<str>", "~inner(List<int> a)", "List<List<int>> x"],
        &[],
    );
}

#[test]
fn what_would_be_drawn_wrongly_is_not() {
    is_not_drawn("graph TD\nA --> B\nA -.-> B");
    is_not_drawn("graph TD\nA -- text with -- dashes --> B");
    shows("sequenceDiagram\nA->>B: hi; B->>A: wrap: ho #35;1", &["hi", "ho #1"], &[";", "wrap"]);
    shows("stateDiagram-v2\nA --> B :", &["A", "B", "▼"], &[]);
}
