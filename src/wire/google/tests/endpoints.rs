//! Where a request goes, and what it is signed with.

use super::*;
use crate::llm::event::ErrorKind;
use crate::llm::options::StreamOptions;
use crate::llm::secret::Secret;

const METHOD: &str = ":streamGenerateContent?alt=sse";

fn vertex(id: &str, base_url: &str) -> Model {
    let provider =
        json!({"id": id, "api": "google-vertex", "provider": "google-vertex", "baseUrl": base_url});
    testing::model(provider)
}

fn settings(settings: &[(&str, &str)], token: Option<&str>) -> StreamOptions {
    let settings = settings.iter();
    let token = token.map(|token| ("authorization".to_owned(), Some(format!("Bearer {token}"))));
    StreamOptions {
        env: settings.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        headers: token.into_iter().collect(),
        ..StreamOptions::default()
    }
}

fn keyed(key: &str) -> StreamOptions {
    StreamOptions { api_key: Some(Secret::new(key)), ..StreamOptions::default() }
}

/// The URL without its method, and the key, of a request for `q`.
fn sent(api: Google, model: &Model, options: &StreamOptions) -> (String, Option<String>) {
    let context = testing::context(&json!([{"role": "user", "content": "q"}]));
    let request = testing::ask(&api, model, &context, options).unwrap();
    let url = request.url.strip_suffix(METHOD).unwrap().to_owned();
    let mut headers = request.headers.into_iter();
    let key = headers.find(|(name, _)| name == "x-goog-api-key");
    (url, key.map(|(_, key)| key))
}

fn refused(api: Google, model: &Model, options: &StreamOptions) -> (ErrorKind, String) {
    let context = testing::context(&json!([{"role": "user", "content": "q"}]));
    let error = testing::ask(&api, model, &context, options).unwrap_err();
    (error.kind, error.message)
}

#[test]
fn the_gemini_api_takes_a_key_below_its_base_url() {
    let cases = [
        ("gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("models/gemini-2.5-pro", "models/gemini-2.5-pro"),
        ("tunedModels/mine", "tunedModels/mine"),
    ];
    for (id, path) in cases {
        let expected = (format!("{BASE}/{path}"), Some("k".to_owned()));
        assert_eq!(sent(Google::GenerativeAi, &model(id), &keyed(" k ")), expected);
    }
    for id in ["", "a?b", "a b", "../a", "a#b", "a&b", "é", "a%2f"] {
        let (kind, message) = refused(Google::GenerativeAi, &model(id), &keyed("k"));
        assert_eq!(kind, ErrorKind::Request, "{id}");
        assert!(message.contains(&format!("\"{id}\"")), "{message}");
    }
    let (kind, message) = refused(Google::GenerativeAi, &model("gemini"), &StreamOptions::default());
    assert_eq!(kind, ErrorKind::Auth);
    assert_eq!(message, "No API key for provider: google");
}

#[test]
fn a_gateway_may_take_a_token_and_is_told_the_conversation() {
    let m = Model {
        provider: "opencode".into(),
        base_url: "https://opencode.ai/zen/v1/".into(),
        ..model("gemini-3.1-pro")
    };
    let options = StreamOptions { session_id: Some("s1".into()), ..settings(&[], Some("t")) };
    let context = testing::context(&json!([{"role": "user", "content": "q"}]));
    let request = testing::ask(&Google::GenerativeAi, &m, &context, &options).unwrap();
    assert_eq!(request.url, format!("https://opencode.ai/zen/v1/models/gemini-3.1-pro{METHOD}"));
    for header in [
        ("authorization", "Bearer t"),
        ("x-opencode-session", "s1"),
        ("x-opencode-client", "pi"),
        ("content-type", "application/json"),
    ] {
        let (name, value) = (header.0.to_owned(), header.1.to_owned());
        assert!(request.headers.contains(&(name, value)), "{header:?}");
    }
}

#[test]
fn vertex_takes_a_key_everywhere_or_a_token_in_a_project() {
    let pattern = "https://{location}-aiplatform.googleapis.com";
    let place = |location| {
        settings(&[("GOOGLE_CLOUD_PROJECT", "p-1"), ("GOOGLE_CLOUD_LOCATION", location)], Some("t"))
    };
    let in_project = |host: &str, location: &str| {
        format!("https://{host}/v1/projects/p-1/locations/{location}/publishers/google/models/gemini")
    };
    #[rustfmt::skip]
    let cases = [
        (pattern, "gemini", keyed("k"), "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini".to_owned(), Some("k")),
        ("", "gemini", keyed("k"), "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini".to_owned(), Some("k")),
        (pattern, "meta/llama", keyed("k"), "https://aiplatform.googleapis.com/v1/publishers/meta/models/llama".to_owned(), Some("k")),
        (pattern, "gemini", place("us-central1"), in_project("us-central1-aiplatform.googleapis.com", "us-central1"), None),
        (pattern, "gemini", place("global"), in_project("aiplatform.googleapis.com", "global"), None),
        (pattern, "gemini", place("eu"), in_project("aiplatform.eu.rep.googleapis.com", "eu"), None),
        (pattern, "projects/x/locations/y/endpoints/1", place("global"), "https://aiplatform.googleapis.com/v1/projects/x/locations/y/endpoints/1".to_owned(), None),
        ("https://proxy.test/base/", "gemini", keyed("k"), "https://proxy.test/base/v1/publishers/google/models/gemini".to_owned(), Some("k")),
        ("https://proxy.test/v1beta1", "gemini", settings(&[], Some("t")), "https://proxy.test/v1beta1/publishers/google/models/gemini".to_owned(), None),
        ("https://v1.proxy.test", "gemini", keyed("k"), "https://v1.proxy.test/v1/publishers/google/models/gemini".to_owned(), Some("k")),
    ];
    for (base_url, id, options, url, key) in cases {
        let sent = sent(Google::Vertex, &vertex(id, base_url), &options);
        assert_eq!(sent, (url, key.map(str::to_owned)), "{base_url} {id}");
    }
}

#[test]
fn what_vertex_lacks_is_named() {
    let m = vertex("gemini", "https://{location}-aiplatform.googleapis.com");
    let project = ("GCLOUD_PROJECT", "p");
    let location = ("GOOGLE_CLOUD_LOCATION", "global");
    let nothing = [("GOOGLE_CLOUD_PROJECT", ""), ("GCLOUD_PROJECT", "")];
    #[rustfmt::skip]
    let cases = [
        (settings(&nothing, Some("t")), ErrorKind::Auth, "GOOGLE_CLOUD_PROJECT"),
        (settings(&[project], Some("t")), ErrorKind::Auth, "GOOGLE_CLOUD_LOCATION"),
        (settings(&[project, location], None), ErrorKind::Auth, "No API key for provider: google-vertex"),
        (settings(&[("GCLOUD_PROJECT", "a/b"), location], Some("t")), ErrorKind::Request, "a/b"),
        (settings(&[project, ("GOOGLE_CLOUD_LOCATION", "evil.test/")], Some("t")), ErrorKind::Request, "evil.test"),
    ];
    for (options, kind, part) in cases {
        for key in [None, Some("gcp-vertex-credentials"), Some("<paste here>")] {
            let mut options = options.clone();
            options.api_key = key.map(Secret::new);
            let (found, message) = refused(Google::Vertex, &m, &options);
            assert_eq!(found, kind, "{message}");
            assert!(message.contains(part), "{message}");
        }
    }
}
