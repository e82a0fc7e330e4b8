//! Models that do not chat, asked by scripts of `codemode` and by extensions: what is sent, and what comes of it.

use crate::agent::{Outcome, World, write_program};
use crate::codemode::{PRINT, has_engine, script, tool_result};
use crate::extension::{registers, script as extension_script};
use crate::server::{Reply, Request, Server};
use serde_json::{Value, json};

/// A question of each type, as scripts write them.
const QUESTIONS: &str = "{mood: {type: 'choice', instructions: 'Which?', criteria: {good: 'Happy', bad: ''}}, \
    rank: {type: 'score', instructions: 'How?', criteria: ['low', 'mid', 'high']}, \
    ok: {type: 'bool', instructions: 'Is it?', criteria: {true: 'Yes', false: ''}}}";

/// The answers that scripts get to them.
fn answers() -> Value {
    json!({"mood": {"type": "choice", "choice": "good", "probabilities": {"good": 0.5, "bad": 0.5}, "confidence": 0.25},
        "rank": {"type": "score", "score": 1.5, "confidence": 0.5}, "ok": {"type": "bool", "probability": 0.75}})
}

/// The answers of a System One server.
fn system_one() -> Value {
    let mut answers = answers();
    answers["ok"] = json!({"type": "noul", "noul": 0.75});
    json!({"answers": answers, "usage": {"input_tokens": 1000, "output_tokens": 0}})
}

fn ok(body: &Value) -> Reply {
    Reply::status(200, "application/json", &body.to_string())
}

/// A world whose model runs a script.
fn world(code: &str, replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    served(std::iter::once(script(code)).chain(replies))
}

/// A world in which all requests go to one server, by the paths that `models.json` adds.
fn served(replies: impl IntoIterator<Item = Reply>) -> (World, Server) {
    let (server, world) = (Server::start(replies), World::new());
    let mut providers = json!({"mock": {"baseUrl": server.url(), "apiKey": "test-key", "api": "openai-completions",
        "models": [{"id": "m1"}]}});
    for name in ["typesafe", "openrouter", "openai", "cloudflare-workers-ai"] {
        providers[name] =
            json!({"baseUrl": format!("{}/{name}", server.url()), "apiKey": format!("{name}-key")});
    }
    world.write_config("models.json", &json!({"providers": providers}).to_string());
    (world, server)
}

fn run(world: &World) -> Outcome {
    world.pi().env("CLOUDFLARE_ACCOUNT_ID", "a").args(PRINT).args(["-p", "go"]).run().success()
}

/// What the script returned, whose requests are those between the first and the last.
fn returned(server: &Server) -> (Value, Vec<Request>) {
    let mut requests = server.requests();
    let last = requests.pop().expect("requests").last_text();
    let (_, text) = last.split_once("seconds\nOutput:\n").unwrap_or_else(|| panic!("no head: {last}"));
    let text = text.trim_start_matches('\n');
    requests.remove(0);
    (serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}")), requests)
}

#[test]
fn classifiers_are_asked_in_their_protocols() {
    if !has_engine() {
        return;
    }
    let questions = json!({"mood": {"type": "choice", "instructions": "Which?", "criteria": {"good": "Happy", "bad": ""}},
        "rank": {"type": "score", "instructions": "How?", "criteria": ["low", "mid", "high"]},
        "ok": {"type": "noul", "instructions": "Is it?", "criteria": {"true": "Yes", "false": ""}}});
    let image = "{type: 'image', data: 'AAAA', mimeType: 'image/png'}";
    let url = "data:image/png;base64,AAAA";
    let decisions = json!({"answers": [
        {"type": "choice", "name": "mood", "choice": "good", "confidence": 0.25,
            "probabilities": [{"value": "good", "probability": 0.5}, {"value": "bad", "probability": 0.5}]},
        {"type": "predicate", "name": "ok", "probability": 0.75},
        {"type": "score", "name": "rank", "score": 1.5, "confidence": 0.5}],
        "usage": {"input_tokens": 1000}});
    let decision_questions = json!([
        {"type": "choice", "name": "mood", "instructions": "Which?",
            "choices": [{"value": "good", "description": "Happy"}, {"value": "bad"}]},
        {"type": "score", "name": "rank", "instructions": "How?",
            "levels": [{"label": "low"}, {"label": "mid"}, {"label": "high"}]},
        {"type": "predicate", "name": "ok", "instructions": "Is it?\n\nTrue means: Yes"}]);
    let input = |text: &str| {
        json!([{"role": "user", "content": [{"type": "input_text", "text": text},
        {"type": "input_image", "image_url": url}]}])
    };
    let asset = json!({"<image-1>": {"type": "image", "format": "png", "data_base64": "AAAA"}});
    let part = json!({"type": "image_url", "image_url": {"url": url}});
    let wrapped = |result: Value| ok(&json!({"success": true, "result": result}));
    let run_record = json!({"state": "Completed", "result": system_one()});
    let clef = json!({"state": {"n": 1}, "questions": questions, "images": [url]});
    let jev = json!({"state": ["<image-1>", {"n": 1}], "questions": questions, "assets": asset});
    for (provider, id, images, path, body, reply, cost) in [
        (
            "typesafe",
            "jev-latest",
            "",
            "/systemone",
            json!({"model": "jev-latest", "state": {"n": 1}, "questions": questions}),
            ok(&system_one()),
            0.0,
        ),
        (
            "typesafe",
            "jev-latest",
            image,
            "/systemone",
            json!({"model": "jev-latest", "state": ["<image-1>", {"n": 1}], "questions": questions, "assets": asset}),
            ok(&system_one()),
            0.0,
        ),
        (
            "openrouter",
            "typesafe/jev-1.14",
            image,
            "/systemone",
            json!({"model": "typesafe/jev-1.14", "state": [part, {"n": 1}], "questions": questions}),
            ok(&system_one()),
            0.000_042,
        ),
        (
            "cloudflare-workers-ai",
            "@cf/cloudflare/clef",
            image,
            "/run",
            json!({"model": "@cf/cloudflare/clef", "input": clef}),
            wrapped(system_one()),
            0.000_24,
        ),
        (
            "cloudflare-workers-ai",
            "typesafe/jev",
            image,
            "/run",
            json!({"model": "typesafe/jev", "input": jev}),
            wrapped(run_record),
            0.000_042,
        ),
        (
            "openai",
            "gpt-6-luna",
            "",
            "/decisions",
            json!({"model": "gpt-6-luna", "input": "{\"n\":1}", "questions": decision_questions}),
            ok(&decisions),
            0.0001,
        ),
        (
            "openai",
            "gpt-6-luna",
            image,
            "/decisions",
            json!({"model": "gpt-6-luna", "input": input("{\"n\":1}"), "questions": decision_questions}),
            ok(&decisions),
            0.0001,
        ),
    ] {
        let code = format!(
            "return await models.classify({{provider: '{provider}', id: '{id}'}}, \
             {{state: {{n: 1}}, images: [{images}], questions: {QUESTIONS}}})"
        );
        let (world, server) = world(&code, [reply, Reply::text("done")]);
        run(&world);
        let (got, requests) = returned(&server);
        let label = format!("{provider}/{id}");
        assert_eq!(got["answers"], answers(), "{label}: {got}");
        assert_eq!((&got["stopReason"], &got["usage"]["input"]), (&json!("stop"), &json!(1000)), "{label}");
        let close = (got["usage"]["cost"]["total"].as_f64().unwrap() - cost).abs() < 1e-9;
        assert!(close, "{label}: {got}");
        assert_eq!(requests[0].path, format!("/v1/{provider}{path}"), "{label}");
        assert_eq!(requests[0].body, body, "{label}");
        assert_eq!(requests[0].header("authorization"), Some(&*format!("Bearer {provider}-key")), "{label}");
        let opted_in = requests[0].header("typesafe-danger-zone-images").is_some();
        assert_eq!(opted_in, provider == "typesafe" && !images.is_empty(), "{label}");
        // The session pays for it.
        let result = tool_result(&world);
        assert_eq!(result["usage"]["input"], 1000, "{label}: {result}");
        let call = &result["details"]["calls"][0];
        assert_eq!((&call["name"], &call["args"]), (&json!("models.classify"), &json!(label)));
        assert!(result.get("nestedCalls").is_none(), "{label}: {result}");
    }
}

#[test]
fn what_goes_wrong_with_a_classifier_is_said() {
    if !has_engine() {
        return;
    }
    let no_answer = json!({"answers": {}, "usage": {"input_tokens": 7}});
    let refusal = json!({"answers": [{"name": "ok", "type": "refusal"}]});
    let html = |status: u16| Reply::status(status, "text/html", "<html><title>Late</title></html>");
    let busy = || Reply::status(503, "application/json", r#"{"error":{"message":"busy"}}"#);
    let wrong = json!({"answers": {"ok": {"type": "noul", "noul": "much"}}});
    let run_failed = json!({"success": false, "errors": [{"message": "no such model"}]});
    let cases: Vec<(&str, &str, Vec<Reply>, &str)> = vec![
        ("typesafe", "jev-latest", vec![ok(&no_answer)], "no answer to ok"),
        ("typesafe", "jev-latest", vec![ok(&wrong)], "is no number"),
        ("typesafe", "jev-latest", vec![ok(&json!([1]))], "no JSON object"),
        (
            "typesafe",
            "jev-latest",
            vec![Reply::status(401, "application/json", r#"{"error":"bad typesafe-key"}"#)],
            "401",
        ),
        ("typesafe", "jev-latest", vec![busy(), busy(), busy()], "busy"),
        ("openai", "gpt-6-luna", vec![html(504)], "five seconds"),
        ("openai", "gpt-6-luna", vec![ok(&refusal)], "refuses to answer ok"),
        ("cloudflare-workers-ai", "typesafe/jev", vec![ok(&run_failed)], "no such model"),
        (
            "cloudflare-workers-ai",
            "typesafe/jev",
            vec![ok(&json!({"result": {"state": "Failed"}}))],
            "(state: Failed)",
        ),
    ];
    for (provider, id, replies, expected) in cases {
        let code = format!(
            "return await models.classify({{provider: '{provider}', id: '{id}'}}, {{state: {{}}, questions: {{ok: \
             {{type: 'bool', instructions: 'Is it?', criteria: {{true: '', false: ''}}}}}}}})"
        );
        let asked = replies.len();
        let (world, server) = world(&code, replies.into_iter().chain([Reply::text("done")]));
        run(&world);
        let (got, requests) = returned(&server);
        assert_eq!((&got["stopReason"], &got["answers"]), (&json!("error"), &json!({})), "{expected}");
        let message = got["errorMessage"].as_str().unwrap();
        assert!(message.contains(expected) && !message.contains("typesafe-key"), "{expected}: {message}");
        assert_eq!(requests.len(), asked, "{expected}");
        assert_eq!(tool_result(&world)["details"]["calls"][0]["status"], "error", "{expected}");
    }
}

#[test]
fn wrong_questions_are_errors_of_the_script() {
    if !has_engine() {
        return;
    }
    let jev = "{provider: 'typesafe', id: 'jev-latest'}";
    let calls = [
        ("models.classify()".to_owned(), "takes a classifier model first"),
        ("models.classify({provider: 'mock', id: 'm1'}, {})".to_owned(), "is a chat model"),
        ("models.classify({provider: 'typesafe', id: 'x'}, {})".to_owned(), "no classifier model typesafe/x"),
        (format!("models.classify({jev})"), "must be an object"),
        (format!("models.classify({jev}, {{state: 1}})"), "context.state"),
        (format!("models.classify({jev}, {{state: {{}}, questions: {{}}}})"), "context.questions must"),
        (
            format!(
                "models.classify({jev}, {{state: {{}}, questions: {{a: {{type: 'x', instructions: ''}}}}}})"
            ),
            "type must",
        ),
        (
            format!(
                "models.classify({jev}, {{state: {{}}, questions: {{a: {{type: 'score', instructions: '', criteria: []}}}}}})"
            ),
            "list of levels",
        ),
        (
            format!("models.classify({jev}, {{state: {{}}, images: [1], questions: {{}}}})"),
            "context.images[0]",
        ),
        (
            "models.generateImages({provider: 'openrouter', id: 'openai/gpt-5-image'}, {input: []})"
                .to_owned(),
            "not empty",
        ),
        ("models.getModelsOfType('x')".to_owned(), "\"classifier\""),
        ("models.getModelOfType('chat', 'm1')".to_owned(), "three strings"),
    ];
    let tried: Vec<String> =
        calls.iter().map(|(call, _)| format!("await {call}.catch((error) => error.message)")).collect();
    let (world, server) = world(&format!("return [{}]", tried.join(", ")), [Reply::text("done")]);
    run(&world);
    let (got, _) = returned(&server);
    for (at, (call, expected)) in calls.iter().enumerate() {
        let said = got[at].as_str().unwrap_or_default();
        assert!(said.contains(expected), "{call}: {said}");
    }
}

#[test]
fn models_of_all_types_are_listed() {
    if !has_engine() {
        return;
    }
    let code = "const of = async (type, all) => (await models[all ? 'getModelsOfType' : 'getAvailableOfType'](type)).length;\n\
        const jev = await models.getModelOfType('classifier', 'typesafe', 'jev-latest');\n\
        return [await of('classifier', true), await of('classifier'), await of('image'), jev, \
        (await models.getAvailableOfType('chat', 'mock')).map((model) => model.id), \
        String(await models.getModelOfType('image', 'openrouter', 'none'))]";
    let (world, server) = world(code, [Reply::text("done")]);
    run(&world);
    let (got, _) = returned(&server);
    // GitHub, OpenCode and Vercel have no key here.
    assert_eq!((&got[0], &got[1], &got[2]), (&json!(64), &json!(43), &json!(66)));
    assert_eq!((&got[4], &got[5]), (&json!(["m1"]), &json!("undefined")));
    let jev = json!({"id": "jev-latest", "name": "Jev", "api": "typesafe-system-one", "provider": "typesafe",
        "baseUrl": format!("{}/typesafe", server.url()), "input": ["text", "image"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 64000,
        "compat": {"imageInput": "assets", "sendImageOptInHeader": true}, "type": "classifier"});
    assert_eq!(got[3], jev);
}

#[test]
fn images_are_made_and_shown() {
    if !has_engine() {
        return;
    }
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    let made = json!({"id": "g", "choices": [{"message": {"content": "Here", "images": [
        {"image_url": {"url": format!("data:image/png;base64,{PIXEL}")}}, {"image_url": {"url": "https://a.b/c"}}]}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 4}}});
    let ask = "const made = await models.generateImages({provider: 'openrouter', id: 'google/gemini-2.5-flash-image'}, \
        {input: [{type: 'text', text: 'A fox'}, {type: 'image', data: 'AAAA', mimeType: 'image/png'}]});\n";
    for (end, shown) in [("image(made.output[1])", true), ("return made.output.length", false)] {
        let (world, server) = world(&format!("{ask}{end}"), [ok(&made), Reply::text("done")]);
        run(&world);
        let requests = server.requests();
        assert_eq!(requests[1].path, "/v1/openrouter/chat/completions");
        let content = json!([{"type": "text", "text": "A fox"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]);
        let body = json!({"model": "google/gemini-2.5-flash-image", "messages": [{"role": "user", "content": content}],
            "stream": false, "modalities": ["image", "text"]});
        assert_eq!(requests[1].body, body);
        let kept = tool_result(&world);
        let images =
            kept["content"].as_array().unwrap().iter().filter(|block| block["type"] == "image").count();
        assert_eq!(images, usize::from(shown), "{kept}");
        assert_eq!(kept.to_string().contains("were not put out"), !shown, "{kept}");
        assert_eq!((&kept["usage"]["input"], &kept["usage"]["cacheRead"]), (&json!(6), &json!(4)));
    }
}

#[test]
fn a_chat_model_of_llama_cpp_is_a_classifier() {
    if !has_engine() {
        return;
    }
    let code = "return await models.classify({provider: 'llama.cpp', id: 'tiny'}, {state: {n: 1}, questions: \
        {size: {type: 'score', instructions: 'How big?', criteria: ['small', 'big']}}})";
    let tokens = |ids: &[u32]| ok(&json!({"tokens": ids}));
    let row = |id: u32, share: f64| json!({"id": id, "logprob": share.ln()});
    let probable = |rows: &[Value]| ok(&json!({"completion_probabilities": [{"top_logprobs": rows}]}));
    let server = Server::start([
        script(code),
        // A line break; the labels behind one; the second has no token of its own there, but alone.
        tokens(&[10]),
        tokens(&[10, 48]),
        tokens(&[77]),
        tokens(&[49]),
        ok(&json!({"prompt": "<user>what is asked<think>"})),
        probable(&[row(48, 0.2)]),
        // Looked for deeper: twice as probable as the other.
        probable(&[row(48, 0.2), row(49, 0.4)]),
        Reply::text("done"),
    ]);
    server.list_models();
    let world = World::new();
    world.use_server(&server);
    let root = format!("http://127.0.0.1:{}", server.port());
    world.pi().env("LLAMA_BASE_URL", &root).args(PRINT).args(["-p", "go"]).run().success();
    let requests = server.requests();
    let said = requests.last().unwrap().last_text();
    let got: Value = serde_json::from_str(said.split_once("Output:\n").unwrap().1.trim())
        .unwrap_or_else(|_| panic!("{said}"));
    assert_eq!(got["api"], "llama-cpp-classify", "{got}");
    let answer = &got["answers"]["size"];
    let is_near = |name: &str, value: f64| (answer[name].as_f64().unwrap() - value).abs() < 1e-6;
    assert!(is_near("score", 2.0 / 3.0) && is_near("confidence", 1.0 / 3.0), "{got}");
    let paths: Vec<&str> =
        requests[1..requests.len() - 1].iter().map(|request| request.path.as_str()).collect();
    let expected = "/tokenize /tokenize /tokenize /tokenize /apply-template /completion /completion";
    assert_eq!(paths.join(" "), expected);
    let asked = requests[5].body["messages"][1]["content"].as_str().unwrap();
    assert!(asked.contains("0. small\n1. big") && asked.matches("\"n\": 1").count() == 2, "{asked}");
    let completion = &requests[6].body;
    assert_eq!(completion["prompt"], "<user>what is asked<think></think>");
    assert_eq!((&completion["model"], &completion["n_probs"]), (&json!("tiny"), &json!(256)));
    assert_eq!(requests[7].body["n_probs"], 4096);
}

#[test]
fn an_extension_asks_a_classifier() {
    let arms = registers(&json!({"commands": [{"name": "judge", "description": "Judges"}]}));
    let context = json!({"state": {"n": 1}, "questions": {"ok":
        {"type": "bool", "instructions": "Is it?", "criteria": {"true": "", "false": ""}}}});
    let params = json!({"provider": "typesafe", "modelId": "jev-latest", "context": context});
    let arms = arms
        + &format!("    *'\"method\":\"command.run\"'*) run=$id; call ask models.classify '{params}' ;;\n")
        + "    *'\"id\":\"ask\"'*) ok null \"$run\" ;;\n";
    let (world, server) = served([ok(&system_one())]);
    write_program(&world.agent_dir().join("extensions/judge"), &extension_script(&arms));
    world.pi().args(["--model", "mock/m1", "-p", "/judge"]).run().success();
    let requests = server.requests();
    assert_eq!(requests[0].path, "/v1/typesafe/systemone");
    let log = std::fs::read_to_string(world.home().join("ext.log")).unwrap();
    let answer = log.lines().find(|line| line.contains("\"id\":\"ask\"")).unwrap();
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["result"]["answers"]["ok"], json!({"type": "bool", "probability": 0.75}), "{answer}");
}
