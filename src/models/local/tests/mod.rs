//! Servers of each kind, honest and not, found on this machine.

mod server;

use super::address::{LLAMA_CPP, LM_STUDIO, OLLAMA, SGLANG, VLLM, is_loopback, ollama_root, root};
use super::*;
use crate::llm::secret::Secret;
use server::{Answer, Server, not_found};
use std::net::TcpListener;

/// Long enough that a busy machine is no reason to miss an answer.
const PATIENT: Duration = Duration::from_secs(20);

fn ask(server: &Server, kind: Kind) -> Vec<Offer> {
    ask_with(server, kind, &Env::of([]))
}

fn ask_with(server: &Server, kind: Kind, env: &Env) -> Vec<Offer> {
    let target = Target { kind, root: server.root.clone(), key: None, named: None };
    let offers = ask_all(vec![target], env, PATIENT).offers;
    for offer in &offers {
        let model = &offer.model;
        assert_eq!(model.provider, "local");
        assert_eq!(model.api, "openai-completions");
        assert_eq!(model.base_url, format!("{}/v1", server.root));
        assert!(model.max_tokens > 0 && model.max_tokens <= model.context_window);
        assert_eq!(model.compat.as_ref().unwrap()["maxTokensField"], "max_tokens");
        let tells = model.compat.as_ref().unwrap().get("promptProgress").is_some();
        assert_eq!(tells, offer.server.kind == Kind::LlamaCpp);
        assert_eq!(offer.window_known, model.context_window != WINDOW_UNKNOWN);
    }
    offers
}

/// Name, window, and whether it is loaded.
fn facts(offers: &[Offer]) -> Vec<(&str, u64, bool)> {
    let facts =
        offers.iter().map(|offer| (offer.model.name.as_str(), offer.model.context_window, offer.loaded));
    facts.collect()
}

fn llama_list(extra: Value) -> Value {
    let mut entry = json!({"id": "/models/Tiny-1B.Q4.gguf", "object": "model", "owned_by": "llamacpp",
        "meta": {"n_ctx_train": 131_072}});
    for (name, value) in object(extra) {
        entry[name] = value;
    }
    json!({"models": [{"name": "x"}], "object": "list", "data": [entry]})
}

#[test]
fn llama_cpp_tells_the_window_of_a_slot_and_whether_the_template_has_tools() {
    let props = |caps: Value, template: &str, vision: bool| {
        json!({"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4,
            "chat_template": template, "chat_template_caps": caps, "modalities": {"vision": vision}})
    };
    let with = |props: Value| {
        let server = Server::start(move |request, _| match request {
            "GET /v1/models" => Answer::Json(llama_list(json!({}))),
            "GET /props" => Answer::Json(props.clone()),
            _ => not_found(),
        });
        // Known by its own words, whatever port it listens on.
        let mut offers = ask(&server, Kind::Vllm);
        assert_eq!(facts(&offers), [("Tiny-1B.Q4", 8192, true)]);
        assert_eq!(offers[0].server.kind, Kind::LlamaCpp);
        assert_eq!(offers[0].model.id, "/models/Tiny-1B.Q4.gguf");
        assert_eq!(offers[0].model.max_tokens, 2048);
        offers.remove(0)
    };
    let without = with(props(json!({"supports_tools": false, "supports_tool_calls": false}), "{% %}", false));
    assert!(matches!(&without.tools, Tools::Unsupported(why) if why.contains("--jinja")));
    assert_eq!(without.model.input, ["text"]);
    assert!(!without.model.reasoning);

    let able = with(props(json!({"supports_tools": true}), "{% if enable_thinking %}", true));
    assert_eq!(able.tools, Tools::Supported);
    assert_eq!(able.model.input, ["text", "image"]);
    assert!(able.model.reasoning);
    assert_eq!(able.model.compat.as_ref().unwrap()["thinkingFormat"], "qwen-chat-template");
    assert_eq!(able.model.thinking_levels().len(), 2);

    assert_eq!(with(props(Value::Null, "", false)).tools, Tools::Unknown);
}

#[test]
fn a_llama_cpp_router_is_asked_only_about_what_is_in_memory() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => {
            let entry = |id, status| json!({"id": id, "owned_by": "llamacpp", "status": {"value": status}});
            Answer::Json(
                json!({"data": [entry("a b", "loaded"), entry("c", "sleeping"), entry("d", "unloaded")]}),
            )
        }
        "GET /props?model=a%20b" => Answer::Json(json!({"default_generation_settings": {"n_ctx": 4096}})),
        _ => not_found(),
    });
    let offers = ask(&server, Kind::LlamaCpp);
    assert_eq!(facts(&offers), [("a b", 4096, true), ("c", WINDOW_UNKNOWN, false)]);
    assert_eq!(server.seen(), ["GET /v1/models", "GET /props?model=a%20b"]);
}

#[test]
fn a_model_that_only_decides_is_a_classifier() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => {
            let decides = json!({"architecture": {"output_modalities": ["decisions"]}, "status": {"value": "unloaded"}});
            Answer::Json(llama_list(decides))
        }
        _ => not_found(),
    });
    let env = Env::of([("LLAMA_BASE_URL", &*server.root)]);
    let found = discover(&env, PATIENT, &Allowed::All);
    assert!(found.offers.iter().all(|offer| offer.model.provider != "llama.cpp"), "{:?}", found.offers);
    let [model] = &*found.classifiers else { panic!("{:?}", found.classifiers) };
    let of = (&*model.provider, &*model.api, ModelType::of(model));
    assert_eq!(of, ("llama.cpp", "typesafe-system-one", ModelType::Classifier));
    assert_eq!(model.base_url, format!("{}/v1", server.root));
}

#[test]
fn ollama_tells_what_is_loaded_with_which_window_and_what_a_model_can_do() {
    let server = Server::start(|request, body| {
        let info = |length: u64| json!({"general.architecture": "x", "x.context_length": length});
        match (request, body) {
            ("GET /api/tags", _) => Answer::Json(json!({"models": [
                {"name": "new:1b", "model": "new:1b"}, {"name": "file:2b"}, {"model": "hot:3b"}, {"model": "embed:4b"}, {"model": "old:5b"}]})),
            ("GET /api/ps", _) => {
                Answer::Json(json!({"models": [{"model": "hot:3b", "context_length": 16384}]}))
            }
            ("POST /api/show", body) if body.contains("new:1b") => Answer::Json(json!({
                "capabilities": ["completion", "tools", "thinking", "vision"], "model_info": info(131_072)})),
            ("POST /api/show", body) if body.contains("file:2b") => Answer::Json(json!({
                "capabilities": ["completion"], "model_info": info(131_072),
                "parameters": "stop    \"<|end|>\"\nnum_ctx    12288\ntemperature 0.6"})),
            ("POST /api/show", body) if body.contains("hot:3b") => Answer::Json(json!({
                "capabilities": ["completion", "tools"], "model_info": info(131_072)})),
            ("POST /api/show", body) if body.contains("embed:4b") => Answer::Json(json!({
                "capabilities": ["embedding"], "model_info": info(512)})),
            _ => not_found(),
        }
    });
    let offers = ask(&server, Kind::Ollama);
    assert_eq!(
        facts(&offers),
        [
            ("hot:3b", 16384, true),
            ("new:1b", 131_072, false),
            ("file:2b", 12288, false),
            ("old:5b", WINDOW_UNKNOWN, false)
        ]
    );
    assert_eq!(offers[0].tools, Tools::Supported);
    assert_eq!(offers[1].model.input, ["text", "image"]);
    assert!(offers[1].model.reasoning);
    assert!(matches!(&offers[2].tools, Tools::Unsupported(why) if why.contains("file:2b")));
    assert_eq!(offers[3].tools, Tools::Unknown);
    // The server's own default holds for what is not loaded yet.
    let env = Env::of([("OLLAMA_CONTEXT_LENGTH", "8192")]);
    let windows = ask_with(&server, Kind::Ollama, &env);
    assert_eq!(
        facts(&windows)[..3],
        [("hot:3b", 16384, true), ("new:1b", 8192, false), ("file:2b", 12288, false)]
    );
}

#[test]
fn lm_studio_tells_loaded_and_largest_window() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => Answer::Json(json!({"data": [{"id": "a", "owned_by": "organization_owner"}]})),
        "GET /api/v0/models" => Answer::Json(json!({"data": [
            {"id": "a", "type": "llm", "state": "not-loaded", "max_context_length": 40960},
            {"id": "e", "type": "embeddings", "state": "loaded", "max_context_length": 512},
            {"id": "b", "type": "vlm", "state": "loaded", "max_context_length": 40960, "loaded_context_length": 8000, "capabilities": ["tool_use"]},
        ]})),
        _ => not_found(),
    });
    let offers = ask(&server, Kind::Other);
    assert_eq!(facts(&offers), [("b", 8000, true), ("a", 40960, false)]);
    assert_eq!(offers[0].server.kind, Kind::LmStudio);
    assert_eq!((&offers[0].tools, &offers[1].tools), (&Tools::Supported, &Tools::Unknown));
}

#[test]
fn vllm_and_sglang_tell_the_window_in_the_list() {
    for (owner, kind) in [("vllm", Kind::Vllm), ("sglang", Kind::Sglang)] {
        let server = Server::start(move |request, _| match request {
            "GET /v1/models" => Answer::Json(json!({"data": [
                {"id": "org/big", "owned_by": owner, "max_model_len": 32000},
                {"id": "adapter", "owned_by": owner, "max_model_len": null}]})),
            _ => not_found(),
        });
        let offers = ask(&server, Kind::Other);
        assert_eq!(facts(&offers), [("org/big", 32000, true), ("adapter", 32000, true)]);
        assert_eq!(offers[0].server.kind, kind);
        assert_eq!(server.seen(), ["GET /v1/models"]);
    }
}

#[test]
fn a_server_that_does_not_say_what_it_is_is_found_out_or_taken_as_it_is() {
    let plain = |request: &str| match request {
        "GET /v1/models" => Answer::Json(json!({"object": "list", "data": [{"id": "m"}]})),
        _ => not_found(),
    };
    let server = Server::start(move |request, _| plain(request));
    let offers = ask(&server, Kind::Other);
    assert_eq!(facts(&offers), [("m", WINDOW_UNKNOWN, true)]);
    assert_eq!(offers[0].server.kind, Kind::Other);

    let server = Server::start(move |request, _| match request {
        "GET /props" => Answer::Json(json!({"default_generation_settings": {"n_ctx": 2048}})),
        _ => plain(request),
    });
    assert_eq!(facts(&ask(&server, Kind::Other)), [("m", 2048, true)]);
}

#[test]
fn what_is_no_model_list_is_no_server() {
    const HTML: &str = "<!doctype html><title>hello</title>";
    let answers: Vec<fn() -> Answer> = vec![
        || Answer::Raw(200, "text/html", HTML.to_owned()),
        || Answer::Raw(200, "application/json", HTML.to_owned()),
        not_found,
        || Answer::Raw(500, "application/json", json!({"data": [{"id": "m"}]}).to_string()),
        || Answer::Raw(302, "text/plain", json!({"data": [{"id": "m"}]}).to_string()),
        || Answer::Json(json!({"data": "m"})),
        || Answer::Json(json!({"data": [{"name": "m"}]})),
        || Answer::Json(json!({"data": [{"id": 5}]})),
        || Answer::Json(json!({"data": [{"id": ""}]})),
        || Answer::Json(json!([{"id": "m"}])),
        || Answer::Json(json!({"models": ["m"]})),
        || Answer::Json(json!({"data": []})),
        || Answer::Json(Value::Null),
        || Answer::Raw(200, "application/json", String::new()),
        || Answer::Raw(200, "application/json", "[".repeat(100_000)),
    ];
    for (row, answer) in answers.into_iter().enumerate() {
        let server = Server::start(move |_, _| answer());
        for kind in [Kind::Ollama, Kind::LlamaCpp, Kind::LmStudio, Kind::Vllm, Kind::Other] {
            assert_eq!(ask(&server, kind), [], "row {row}, {kind:?}");
        }
    }
}

#[test]
fn details_of_a_wrong_shape_are_not_believed() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => {
            Answer::Json(llama_list(json!({"meta": {"n_ctx": -1, "n_ctx_train": 0}, "status": 7})))
        }
        "GET /props" => Answer::Json(
            json!({"default_generation_settings": {"n_ctx": "big"}, "modalities": 1, "chat_template": [], "chat_template_caps": 3}),
        ),
        _ => not_found(),
    });
    assert_eq!(facts(&ask(&server, Kind::LlamaCpp)), [("Tiny-1B.Q4", WINDOW_UNKNOWN, true)]);
}

#[test]
fn silence_costs_the_time_limit_and_other_servers_still_count() {
    let stalls = ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\""];
    let mute = stalls.map(|begin| Server::start(move |_, _| Answer::Stall(begin)));
    let good = Server::start(|request, _| match request {
        "GET /v1/models" => {
            Answer::Json(json!({"data": [{"id": "m", "owned_by": "vllm", "max_model_len": 10}]}))
        }
        _ => not_found(),
    });
    // Accepted by the kernel, never by us.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut roots: Vec<_> = mute.iter().map(|server| server.root.clone()).collect();
    roots.push(format!("http://{}", deaf.local_addr().unwrap()));
    roots.push(good.root.clone());
    let target = |root| Target { kind: Kind::Other, root, key: None, named: None };
    let targets: Vec<_> = roots.into_iter().map(target).collect();
    let found = ask_all(targets, &Env::of([]), Duration::from_secs(1));
    assert_eq!(facts(&found.offers), [("m", 10, true)]);
    // Ends only when the probes have hung up.
    drop(mute);
}

#[test]
fn only_this_machine_and_what_the_user_named_is_asked() {
    let roots = |env: Env| {
        let targets = targets(&env).into_iter();
        targets.map(|target| (target.root, target.key.is_some())).collect::<Vec<_>>()
    };
    let usual = [
        (OLLAMA, false),
        (LLAMA_CPP[0], false),
        (LLAMA_CPP[1], false),
        (LM_STUDIO, false),
        (VLLM, false),
        (SGLANG, false),
    ];
    let usual = usual.map(|(root, key)| (root.to_owned(), key));
    assert_eq!(roots(Env::of([])), usual);
    assert_eq!(roots(Env::of([("OLLAMA_HOST", "0.0.0.0")])), usual);
    assert_eq!(roots(Env::of([("OLLAMA_HOST", "10.0.0.9:11434")])), usual[1..]);
    for (root, _) in roots(Env::of([("LLAMA_API_KEY", "k")])) {
        assert!(is_loopback(&root), "{root}");
    }
    let env = Env::of([
        ("PI_LOCAL_URL", "https://box.lan/v1/"),
        ("PI_LOCAL_API_KEY", "k"),
        ("LLAMA_BASE_URL", "http://127.0.0.1:8080/"),
    ]);
    assert_eq!(roots(env), [("https://box.lan".to_owned(), true)]);
}

#[test]
fn a_key_for_another_address_is_not_shown_to_the_usual_port() {
    let env = Env::of([("LLAMA_API_KEY", "k"), ("LLAMA_BASE_URL", "http://box.lan:8080")]);
    let keyed = targets(&env).into_iter().filter(|target| target.key.is_some());
    assert_eq!(keyed.map(|target| target.root).collect::<Vec<_>>(), ["http://box.lan:8080"]);
    assert_eq!(key_variable("http://127.0.0.1:8080/v1", &env), None);
    assert_eq!(key_variable("http://box.lan:8080/v1", &env), Some("LLAMA_API_KEY"));
    let env = Env::of([("LLAMA_API_KEY", "k")]);
    for server in ["http://127.0.0.1:8080/v1", "http://127.0.0.1:9931/v1"] {
        assert_eq!(key_variable(server, &env), Some("LLAMA_API_KEY"));
    }
}

#[test]
fn host_and_port_of_a_root_are_told_apart() {
    for (root, expected) in [
        ("http://127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("http://[::1]:9/x", ("::1", 9)),
        ("http://[::1]", ("::1", 80)),
        ("https://localhost", ("localhost", 443)),
        ("http://localhost:99999", ("localhost", 80)),
    ] {
        assert_eq!(address::place(root), expected, "{root}");
    }
}

/// A thread's sockets belong to the user that the thread acts as. Only root can act as another one.
#[cfg(target_os = "linux")]
fn as_user<T: Send + 'static>(uid: u32, make: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let act = move || {
        // SAFETY: the bare system call changes this thread alone, and only its rights to files.
        unsafe { libc::syscall(libc::SYS_setfsuid, libc::c_long::from(uid)) };
        make()
    };
    Some(std::thread::spawn(act).join().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_of_another_user_is_left_out_until_it_is_allowed_and_sees_no_key() {
    let start = || {
        Server::start(|request, _| match request {
            "GET /v1/models" => Answer::Json(json!({"data": [{"id": "m", "owned_by": "vllm"}]})),
            _ => not_found(),
        })
    };
    let Some(server) = as_user(1234, start) else { return };
    let host = server.root.strip_prefix("http://").unwrap().to_owned();
    let env = Env::of([("OLLAMA_HOST", host.as_str())]);
    let seen = |allowed: &Allowed| {
        let found = discover(&env, PATIENT, allowed);
        let ids = found.offers.into_iter().filter(|offer| offer.server.root == server.root);
        let strangers = found.strangers.into_iter().filter(|stranger| stranger.server.root == server.root);
        (ids.map(|offer| offer.model.id.clone()).collect::<Vec<_>>(), strangers.collect::<Vec<_>>())
    };
    let (ids, strangers) = seen(&Allowed::default());
    assert_eq!(ids, [""; 0]);
    assert_eq!(strangers[0].owner, Owner::User(1234));
    assert_eq!(strangers[0].key(), format!("{} uid 1234", server.root));
    let said = strangers[0].to_string();
    assert!(said.starts_with(&format!("vLLM at {}, run by the user ", server.root)), "{said}");
    assert_eq!(seen(&Allowed::Only(vec![strangers[0].key()])), (vec!["m".to_owned()], Vec::new()));
    assert_eq!(seen(&Allowed::All), (vec!["m".to_owned()], Vec::new()));
    assert!(server.seen().iter().all(|request| !request.contains("bearer")));
    // One that was named is as the user wants it.
    let env = Env::of([("PI_LOCAL_URL", server.root.as_str()), ("PI_LOCAL_API_KEY", "k")]);
    let found = discover(&env, PATIENT, &Allowed::default());
    assert_eq!((found.offers.len(), found.strangers.len()), (1, 0));
    assert!(server.seen().iter().any(|request| request == "GET /v1/models [bearer k]"));
}

#[test]
fn a_key_goes_to_the_server_it_is_for() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => Answer::Json(llama_list(json!({}))),
        _ => not_found(),
    });
    let target =
        Target { kind: Kind::Other, root: server.root.clone(), key: Some(Secret::new("k1")), named: None };
    ask_all(vec![target], &Env::of([]), PATIENT);
    assert_eq!(server.seen(), ["GET /v1/models [bearer k1]", "GET /props [bearer k1]"]);
}

#[test]
fn a_server_that_the_user_named_and_that_refuses_is_told() {
    let named = Some(("PI_LOCAL_URL", "PI_LOCAL_API_KEY"));
    let with = |status: u16, key: Option<&str>, named| {
        let body = json!({"error": {"message": "Malformed key"}}).to_string();
        let server = Server::start(move |_, _| Answer::Raw(status, "application/json", body.clone()));
        let key = key.map(Secret::new);
        let target = Target { kind: Kind::Other, root: server.root.clone(), key, named };
        let found = ask_all(vec![target], &Env::of([]), PATIENT);
        assert_eq!(found.offers, []);
        let text = found.refusals.join("\n");
        assert!(text.is_empty() || text.starts_with(&format!("The server at {} answered", server.root)));
        text.split_once(" answered ").map(|(_, text)| text.to_owned()).unwrap_or_default()
    };
    let rows = [
        (401, Some("k"), "401 (Malformed key): the key is wrong (PI_LOCAL_API_KEY)"),
        (401, None, "401 (Malformed key): it wants a key: set PI_LOCAL_API_KEY"),
        (400, Some("k"), "400 (Malformed key): is the key right (PI_LOCAL_API_KEY)?"),
        (404, None, "404 (Malformed key): is the address right (PI_LOCAL_URL)?"),
    ];
    for (status, key, expected) in rows {
        assert_eq!(with(status, key, named), expected);
    }
    // What else listens on a usual port is nobody's business.
    assert_eq!(with(401, None, None), "");
}

#[test]
fn a_gateway_tells_what_its_models_take_and_give() {
    let server = Server::start(|request, _| match request {
        "GET /v1/models" => Answer::Json(json!({"object": "list", "data": [
            {"id": "a", "object": "model", "owned_by": "openai", "max_input_tokens": 200_000, "max_output_tokens": 64_000},
            {"id": "b", "model_info": {"max_input_tokens": 8192, "max_output_tokens": 100_000}},
            {"id": "c", "max_input_tokens": null, "max_output_tokens": 0}]})),
        _ => not_found(),
    });
    let offers = ask(&server, Kind::Other);
    assert_eq!(facts(&offers), [("a", 200_000, true), ("b", 8192, true), ("c", WINDOW_UNKNOWN, true)]);
    let most: Vec<u64> = offers.iter().map(|offer| offer.model.max_tokens).collect();
    assert_eq!(most, [64_000, 8192, WINDOW_UNKNOWN / 4]);
}

#[test]
fn addresses_as_people_write_them() {
    for (written, expected) in [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        (" http://127.0.0.1:8080/ ", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080"),
        ("https://box/llm/v1?x#y", "https://box/llm"),
        ("box:9", "http://box:9"),
        ("http://user:pw@box:9/v1", "http://box:9"),
        ("0.0.0.0:9", "http://127.0.0.1:9"),
        ("[::]:9", "http://127.0.0.1:9"),
        ("[::1]:9", "http://[::1]:9"),
        (":9", "http://127.0.0.1:9"),
        ("", "http://127.0.0.1"),
    ] {
        assert_eq!(root(written), expected, "{written}");
    }
    for (written, expected) in [
        ("", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("localhost", "http://localhost:11434"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        (":5000", "http://127.0.0.1:5000"),
        ("[::1]", "http://[::1]:11434"),
        ("http://localhost:5000/", "http://localhost:5000"),
        ("http://localhost", "http://localhost"),
    ] {
        assert_eq!(ollama_root(written), expected, "{written}");
    }
    for (url, expected) in [
        ("http://127.0.0.1:8080/v1", true),
        ("http://127.8.9.1", true),
        ("http://localhost:1", true),
        ("http://[::1]:1/v1", true),
        ("https://127.0.0.1.example.com", false),
        ("http://localhost.example.com", false),
        ("http://127.0.0.1@example.com", false),
        ("http://10.0.0.1", false),
        ("http://[::2]", false),
        ("", false),
    ] {
        assert_eq!(is_loopback(url), expected, "{url}");
    }
}

#[test]
fn names_find_models() {
    let offer = |id: &str, tools: Tools, loaded| {
        let server = super::Server { kind: Kind::Other, root: "http://127.0.0.1:1".to_owned() };
        let mut listed = answer::models(&json!({"data": [{"id": id}]})).unwrap().remove(0);
        listed.tools = tools;
        Offer {
            model: Arc::new(model(PROVIDER, &server, &listed)),
            tools: listed.tools.clone(),
            server,
            loaded,
            window_known: false,
        }
    };
    let none = || Tools::Unsupported("why".to_owned());
    let found = Found {
        offers: vec![
            offer("embed", none(), true),
            offer("cold", Tools::Unknown, false),
            offer("/m/Warm.gguf", Tools::Supported, true),
        ],
        ..Found::default()
    };
    let id = |name: &str| found.find(name).map(|offer| offer.model.id.as_str());
    assert_eq!(id("local"), Some("/m/Warm.gguf"));
    assert_eq!(id("local/cold"), Some("cold"));
    assert_eq!(id("local//m/Warm.gguf"), Some("/m/Warm.gguf"));
    assert_eq!(id("local/warm"), Some("/m/Warm.gguf"));
    assert_eq!(id("llama.cpp/cold"), Some("cold"));
    assert_eq!(id("nope"), None);
    assert_eq!(Found::default().find("local"), None);
    assert_eq!(found.offers[2].to_string(), "Warm (model server at http://127.0.0.1:1, window about 32768)");
}

#[test]
fn a_refusal_of_tools_is_explained() {
    for (error, piece) in [
        ("500: tools param requires --jinja flag", "--jinja"),
        ("registry.ollama.ai/library/gemma3:4b does not support tools", "ollama show"),
        ("Unable to generate parser for this template.", "--chat-template-file"),
        ("\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", "vLLM"),
    ] {
        let why = explain_refused_tools(error).unwrap();
        assert!(why.contains(piece) && why.contains("--no-tools"), "{why}");
    }
    assert_eq!(explain_refused_tools("context size exceeded"), None);
}

proptest::proptest! {
    #[test]
    fn no_address_panics(url in "[a-z0-9:/.\\[\\]?#@ ä]*") {
        let _ = (root(&url), ollama_root(&url), is_loopback(&url), api_url(&url));
    }
}
