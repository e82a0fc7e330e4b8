//! The table of languages.

use super::language::{BRACES, HASH, Kind, Language, NONE, Quote, quote};

const SCRIPT: Language = Language {
    keywords: "as async await break case catch class const continue debugger default delete do else \
        export extends finally for from function get if import in instanceof let new of return set \
        static super switch this throw try typeof var void while with yield",
    literals: "true false null undefined NaN Infinity",
    quotes: &[quote("`", true, true), quote("\"", true, false), quote("'", true, false)],
    letters: "$",
    ..BRACES
};

const C_WORDS: &str = "alignas alignof auto break case const constexpr continue default do else enum \
    extern for goto if inline register restrict return sizeof static static_assert struct switch \
    thread_local typedef typeof union volatile while #define #elif #else #endif #error #if #ifdef \
    #ifndef #include #line #pragma #undef #warning";
const C_TYPES: &str = "bool char double float int int8_t int16_t int32_t int64_t intptr_t long \
    ptrdiff_t short signed size_t ssize_t uint8_t uint16_t uint32_t uint64_t uintptr_t unsigned void \
    wchar_t";

const C: Language = Language {
    names: "c h",
    keywords: C_WORDS,
    types: C_TYPES,
    literals: "true false NULL nullptr",
    letters: "#",
    ..BRACES
};

const STYLES: Language = Language {
    names: "css",
    keywords: "@media @import @font-face @keyframes @supports @layer @container @charset !important",
    literals: "",
    block: Some(("/*", "*/")),
    keys: &[':'],
    letters: "-@!",
    ..NONE
};

pub static LANGUAGES: &[Language] = &[
    Language {
        names: "rust rs",
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let \
            loop match mod move mut pub ref return self static struct super trait type union unsafe use \
            where while yield",
        types: "Self bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        literals: "true false",
        nests: true,
        quotes: &[quote("\"", true, true)],
        has_lifetimes: true,
        ..BRACES
    },
    Language {
        names: "python py pyi python3 starlark bzl",
        keywords: "and as assert async await break case class continue def del elif else except finally \
            for from global if import in is lambda match nonlocal not or pass raise return try while \
            with yield",
        types: "bool bytes dict float frozenset int list object set str tuple type",
        literals: "True False None self cls",
        quotes: &[
            quote("\"\"\"", true, true),
            quote("'''", true, true),
            quote("\"", true, false),
            quote("'", true, false),
        ],
        has_capital_types: true,
        sigils: "@",
        ..HASH
    },
    Language { names: "javascript js jsx mjs cjs node", ..SCRIPT },
    Language {
        names: "typescript ts tsx mts cts",
        keywords: "abstract as asserts async await break case catch class const continue debugger \
            declare default delete do else enum export extends finally for from function get if \
            implements import in infer instanceof interface is keyof let namespace new of private \
            protected public readonly return satisfies set static super switch this throw try type \
            typeof var void while with yield",
        types: "any bigint boolean never number object string symbol unknown",
        ..SCRIPT
    },
    Language {
        names: "go golang",
        keywords: "break case chan const continue default defer else fallthrough for func go goto if \
            import interface map package range return select struct switch type var",
        types: "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 \
            rune string uint uint8 uint16 uint32 uint64 uintptr",
        literals: "true false nil iota",
        quotes: &[quote("`", false, true), quote("\"", true, false), quote("'", true, false)],
        ..BRACES
    },
    C,
    Language {
        names: "cpp c++ cc cxx hpp hh hxx ino cuda cu",
        keywords: "alignas alignof and auto break case catch class co_await co_return co_yield concept \
            const consteval constexpr constinit const_cast continue decltype default delete do \
            dynamic_cast else enum explicit export extern final for friend goto if import inline module \
            mutable namespace new noexcept not operator or override private protected public \
            reinterpret_cast requires return sizeof static static_assert static_cast struct switch \
            template this thread_local throw try typedef typeid typename union using virtual volatile \
            while #define #elif #else #endif #error #if #ifdef #ifndef #include #pragma #undef",
        ..C
    },
    Language {
        names: "java groovy gradle",
        keywords: "abstract assert break case catch class continue def default do else enum extends \
            final finally for if implements import instanceof interface native new non-sealed package \
            permits private protected public record return sealed static strictfp super switch \
            synchronized this throw throws transient try var volatile when while yield",
        types: "boolean byte char double float int long short void",
        quotes: &[quote("\"\"\"", true, true), quote("\"", true, false), quote("'", true, false)],
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "csharp cs c#",
        keywords: "abstract as async await base break case catch checked class const continue default \
            delegate do else enum event explicit extern finally fixed for foreach get goto if implicit \
            in init interface internal is lock nameof namespace new operator out override params \
            partial private protected public readonly record ref required return sealed set sizeof \
            stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual \
            volatile when where while with yield",
        types: "bool byte char decimal double dynamic float int long nint nuint object sbyte short \
            string uint ulong ushort void",
        quotes: &[quote("\"\"\"", false, true), quote("\"", true, false), quote("'", true, false)],
        ..BRACES
    },
    Language {
        names: "kotlin kt kts",
        keywords: "abstract as break by catch class companion const continue crossinline data do else \
            enum expect external final finally for fun get if import in infix init inline inner \
            interface internal is lateinit noinline object open operator out override package private \
            protected public reified return sealed set super suspend tailrec this throw try typealias \
            val var vararg when where while",
        nests: true,
        quotes: &[quote("\"\"\"", false, true), quote("\"", true, false), quote("'", true, false)],
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "swift",
        keywords: "actor any as associatedtype async await break case catch class continue default defer \
            deinit do else enum extension fallthrough fileprivate final for func get guard if import in \
            indirect init inout internal is lazy let mutating nonisolated open operator override \
            private protocol public repeat required rethrows return set some static struct subscript \
            super switch throw throws try typealias unowned var weak where while",
        literals: "true false nil self",
        nests: true,
        quotes: &[quote("\"\"\"", true, true), quote("\"", true, false)],
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "scala sc sbt",
        keywords: "abstract case catch class def do else enum export extends extension final finally for \
            given if implicit import inline lazy match new object opaque override package private \
            protected return sealed super then this throw trait try type using val var while with yield",
        nests: true,
        quotes: &[quote("\"\"\"", false, true), quote("\"", true, false), quote("'", true, false)],
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "dart",
        keywords: "abstract as assert async await base break case catch class const continue covariant \
            default deferred do else enum export extends extension external factory final finally for \
            get if implements import in interface is late library mixin new on operator part required \
            rethrow return sealed set static super switch sync this throw try typedef var when while \
            with yield",
        types: "bool double dynamic int num void",
        quotes: &[
            quote("'''", true, true),
            quote("\"\"\"", true, true),
            quote("\"", true, false),
            quote("'", true, false),
        ],
        ..BRACES
    },
    Language {
        names: "zig",
        keywords: "align allowzero and anyframe anytype asm async await break callconv catch comptime \
            const continue defer else enum errdefer error export extern fn for if inline linksection \
            noalias noinline nosuspend opaque or orelse packed pub resume return struct suspend switch \
            test threadlocal try union unreachable usingnamespace var volatile while",
        types: "bool f16 f32 f64 f128 i8 i16 i32 i64 i128 isize type u8 u16 u32 u64 u128 usize void",
        literals: "true false null undefined",
        block: None,
        sigils: "@",
        ..BRACES
    },
    Language {
        names: "ruby rb rake gemspec gemfile rakefile",
        keywords: "alias and begin break case class def defined? do else elsif end ensure for if in \
            include module next not or private protected public raise redo require require_relative \
            rescue retry return self super then undef unless until when while yield",
        literals: "true false nil",
        block: Some(("=begin", "=end")),
        has_capital_types: true,
        sigils: "@$",
        ..HASH
    },
    Language {
        names: "php",
        keywords: "abstract and as break case catch class clone const continue declare default do echo \
            else elseif empty enum extends final finally fn for foreach function global if implements \
            include include_once instanceof interface isset list match namespace new or print private \
            protected public readonly require require_once return static switch throw trait try unset \
            use var while yield",
        types: "array bool callable float int iterable mixed never object string void",
        comments: &["//", "#"],
        sigils: "$",
        quotes: &[quote("\"", true, true), quote("'", true, true)],
        ..BRACES
    },
    Language {
        names: "bash sh shell zsh ksh console shellscript fish profile bashrc zshrc",
        keywords: "alias and begin break case cd continue declare do done echo elif else end esac eval \
            exec exit export fi for function if in local not or readonly return select set shift source \
            switch test then time trap typeset unset until while",
        literals: "true false",
        quotes: &[quote("\"", true, true), quote("'", false, true), quote("`", true, false)],
        sigils: "$",
        letters: "-",
        ..HASH
    },
    Language {
        names: "powershell ps1 psm1 pwsh",
        keywords: "begin break catch class continue data do dynamicparam else elseif end enum exit filter \
            finally for foreach from function if in param process return switch throw trap try until \
            using while",
        literals: "$true $false $null",
        block: Some(("<#", "#>")),
        quotes: &[quote("\"", false, true), quote("'", false, true)],
        ignores_case: true,
        sigils: "$",
        letters: "-",
        ..HASH
    },
    Language {
        names: "sql mysql postgresql postgres psql sqlite plsql tsql",
        keywords: "add all alter and as asc begin between by cascade case check column commit constraint \
            create cross database default delete desc distinct drop else end except exists explain \
            foreign from full function grant group having if in index inner insert intersect into is \
            join key left like limit not offset on or order outer over partition primary procedure \
            references replace returning revoke right rollback select set table then to transaction \
            trigger truncate union unique update using values view when where with",
        types: "bigint blob boolean bytea char date decimal double float int integer json jsonb numeric \
            real serial smallint text time timestamp timestamptz uuid varchar",
        comments: &["--"],
        block: Some(("/*", "*/")),
        quotes: &[quote("'", false, true), quote("\"", false, false), quote("`", false, false)],
        ignores_case: true,
        ..NONE
    },
    Language {
        names: "html htm xml svg xhtml vue svelte xsl xsd plist rss",
        kind: Kind::Markup,
        literals: "",
        block: Some(("<!--", "-->")),
        quotes: &[],
        letters: "-:.",
        ..NONE
    },
    STYLES,
    Language {
        names: "scss sass less",
        comments: &["//"],
        keywords: "@media @import @font-face @keyframes @supports @layer @use @forward @mixin @include \
            @function @return @if @else @each @for @while @extend !default !important",
        sigils: "$",
        ..STYLES
    },
    Language {
        names: "json jsonc json5 jsonl ndjson webmanifest",
        comments: &["//"],
        block: Some(("/*", "*/")),
        keys: &[':'],
        ..NONE
    },
    Language {
        names: "yaml yml",
        literals: "true false null yes no on off",
        keys: &[':'],
        quotes: &[quote("\"", true, false), quote("'", false, false)],
        letters: "-./",
        sigils: "&*",
        ..HASH
    },
    Language {
        names: "toml ini cfg conf properties env editorconfig dotenv",
        comments: &["#", ";"],
        keys: &['='],
        quotes: &[
            quote("\"\"\"", true, true),
            quote("'''", false, true),
            quote("\"", true, false),
            quote("'", false, false),
        ],
        letters: "-.",
        ..NONE
    },
    Language {
        names: "lua luau",
        keywords: "and break do else elseif end for function goto if in local not or repeat return then \
            until while",
        literals: "true false nil self",
        comments: &["--"],
        block: Some(("--[[", "]]")),
        quotes: &[
            Quote { begin: "[[", end: "]]", escapes: false, lines: true },
            quote("\"", true, false),
            quote("'", true, false),
        ],
        ..NONE
    },
    Language {
        names: "perl pl pm",
        keywords: "and cmp die do each else elsif eq for foreach ge given gt if keys last le local lt map \
            my ne next no not or our package print push redo require return say shift sort splice sub \
            unless until use values wantarray warn when while",
        literals: "undef",
        quotes: &[quote("\"", true, true), quote("'", true, true)],
        sigils: "$@%",
        ..HASH
    },
    Language {
        names: "r",
        keywords: "break else for function if in next repeat return while library require",
        literals: "TRUE FALSE NULL NA NaN Inf",
        letters: ".",
        ..HASH
    },
    Language {
        names: "julia jl",
        keywords: "abstract baremodule begin break catch const continue do else elseif end export finally \
            for function global if import in isa let local macro module mutable primitive quote return \
            struct try type using where while",
        literals: "true false nothing missing",
        block: Some(("#=", "=#")),
        nests: true,
        quotes: &[quote("\"\"\"", true, true), quote("\"", true, true)],
        has_capital_types: true,
        sigils: "@",
        letters: "!",
        ..HASH
    },
    Language {
        names: "haskell hs elm purescript",
        keywords: "case class data default deriving do else exposing foreign forall if import in infix \
            infixl infixr instance let module newtype of port then type where",
        literals: "True False",
        comments: &["--"],
        block: Some(("{-", "-}")),
        nests: true,
        quotes: &[quote("\"", true, false)],
        has_capital_types: true,
        letters: "'",
        ..NONE
    },
    Language {
        names: "ocaml ml mli fsharp fs f#",
        keywords: "and as assert begin class constraint do done downto else end exception external for \
            fun function functor if in include inherit initializer lazy let match member method module \
            mutable namespace new object of open or override private rec sig struct then to try type \
            use val virtual when while with yield",
        literals: "true false",
        comments: &["//"],
        block: Some(("(*", "*)")),
        nests: true,
        quotes: &[quote("\"", true, true)],
        has_capital_types: true,
        letters: "'",
        ..NONE
    },
    Language {
        names: "elixir ex exs",
        keywords: "after and alias case catch cond def defdelegate defexception defimpl defmacro \
            defmodule defp defprotocol defstruct do else end fn for if import in not or quote raise \
            receive rescue require try unless unquote use when with",
        literals: "true false nil",
        quotes: &[quote("\"\"\"", true, true), quote("\"", true, true), quote("'", true, false)],
        has_capital_types: true,
        sigils: "@",
        ..HASH
    },
    Language {
        names: "erlang erl hrl",
        keywords: "after and andalso begin case catch div end fun if not of or orelse receive rem try \
            when xor",
        literals: "true false undefined",
        comments: &["%"],
        has_capital_types: true,
        ..NONE
    },
    Language {
        names: "clojure clj cljs edn lisp scheme el elisp racket",
        keywords: "cond def define defmacro defmethod defmulti defn defprotocol defrecord defun do doseq \
            fn for if if-let lambda let let* loop ns or quote recur require setq unless when when-let",
        literals: "true false nil t",
        comments: &[";"],
        quotes: &[quote("\"", true, true)],
        letters: "-*!?<>=/:",
        ..NONE
    },
    Language {
        names: "dockerfile docker containerfile",
        keywords: "add arg cmd copy entrypoint env expose from healthcheck label maintainer onbuild run \
            shell stopsignal user volume workdir as",
        ignores_case: true,
        sigils: "$",
        letters: "-",
        ..HASH
    },
    Language {
        names: "makefile make mk gnumakefile justfile just",
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override unexport vpath",
        keys: &[':', '='],
        sigils: "$",
        letters: "-.",
        ..HASH
    },
    Language {
        names: "cmake",
        keywords: "add_executable add_library add_subdirectory cmake_minimum_required else elseif \
            endforeach endfunction endif endmacro find_package foreach function if include install macro \
            message option project set target_include_directories target_link_libraries",
        literals: "on off true false",
        ignores_case: true,
        sigils: "$",
        ..HASH
    },
    Language {
        names: "hcl tf terraform tfvars nix",
        keywords: "data for if in inherit let locals module output provider rec resource terraform then \
            else variable with",
        comments: &["#", "//"],
        block: Some(("/*", "*/")),
        keys: &['='],
        letters: "-",
        ..NONE
    },
    Language {
        names: "protobuf proto graphql gql thrift",
        keywords: "directive enum extend extends fragment implements import input interface map message \
            mutation on oneof option optional package query repeated required reserved returns rpc \
            scalar schema service stream subscription syntax type union",
        types: "bool bytes double fixed32 fixed64 float int32 int64 sint32 sint64 string uint32 uint64",
        comments: &["//", "#"],
        sigils: "$@",
        ..BRACES
    },
    Language {
        names: "vim viml vimscript",
        keywords: "augroup autocmd call command else elseif endfor endfunction endif endwhile execute for \
            function if in let map nmap nnoremap noremap return set syntax vmap while",
        comments: &[],
        quotes: &[quote("'", false, false)],
        ..NONE
    },
    Language { names: "diff patch", kind: Kind::Diff, ..NONE },
    Language {
        names: "markdown md mdx",
        kind: Kind::Markdown,
        literals: "",
        quotes: &[quote("`", false, false)],
        ..NONE
    },
];
