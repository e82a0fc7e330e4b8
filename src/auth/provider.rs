//! The table of providers, for lookups, error messages and the manual.
//!
//! A row names the environment variables that may hold a key, in order, and the variables that affect the
//! provider's endpoint or signature.
//!
//! Not here: models (the catalogue) and the search for a key (`auth::credential`).

use crate::auth::{federation, gcp, oauth};
use crate::base::env::Env;
use crate::llm::model::provider_id;
use crate::llm::secret::Vault;

#[derive(Debug)]
pub struct Provider {
    pub id: &'static str,
    /// Display name.
    pub name: &'static str,
    /// Variables that may hold a key; the first one that is set wins.
    pub keys: &'static [&'static str],
    /// Variables that a request requires. `A|B`: one of them is enough.
    pub required: &'static [&'static str],
    /// Variables that affect the endpoint or the signature.
    pub optional: &'static [&'static str],
    /// What can replace a key.
    pub ambient: Ambient,
    /// How the key is sent.
    pub placement: Placement,
}

/// Proofs of identity that replace a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambient {
    None,
    /// No key needed: the server takes requests without one.
    Open,
    /// The usual sources of AWS credentials.
    Aws,
    /// Application default credentials with a project and a location.
    Google,
    /// An identity token of the machine, which Anthropic exchanges.
    Federation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// As the wire protocol does it.
    Protocol,
    /// As `Bearer` in this header, instead of the protocol's own header for a key.
    Header(&'static str),
}

const fn row(id: &'static str, name: &'static str, keys: &'static [&'static str]) -> Provider {
    Provider {
        id,
        name,
        keys,
        required: &[],
        optional: &[],
        ambient: Ambient::None,
        placement: Placement::Protocol,
    }
}

/// Variable with a token that is sent as `Authorization: Bearer`.
pub const BEARER_VARIABLE: &str = "ANTHROPIC_AUTH_TOKEN";

/// Variables with secrets of clouds, which are hidden in builds without the `clouds` feature too.
const CLOUD_KEYS: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "GOOGLE_CLOUD_API_KEY",
];

/// All providers, by id.
#[rustfmt::skip]
pub const PROVIDERS: &[Provider] = &[
    #[cfg(feature = "clouds")]
    Provider {
        optional: &[
            "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_REGION", "AWS_DEFAULT_REGION",
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
            "AWS_BEDROCK_SKIP_AUTH", "AWS_BEDROCK_FORCE_CACHE",
        ],
        ambient: Ambient::Aws,
        ..row("amazon-bedrock", "Amazon Bedrock", &["AWS_BEARER_TOKEN_BEDROCK"])
    },
    row("ant-ling", "Ant Ling", &["ANT_LING_API_KEY"]),
    Provider {
        ambient: Ambient::Federation,
        ..row("anthropic", "Anthropic", &[BEARER_VARIABLE, "ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY"])
    },
    Provider {
        required: &["AZURE_OPENAI_BASE_URL|AZURE_OPENAI_RESOURCE_NAME"],
        optional: &["AZURE_OPENAI_API_VERSION", "AZURE_OPENAI_DEPLOYMENT_NAME_MAP"],
        ..row("azure", "Azure", &["AZURE_OPENAI_API_KEY"])
    },
    row("baseten", "Baseten", &["BASETEN_API_KEY"]),
    row("cerebras", "Cerebras", &["CEREBRAS_API_KEY"]),
    Provider {
        required: &["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"],
        placement: Placement::Header("cf-aig-authorization"),
        ..row("cloudflare-ai-gateway", "Cloudflare AI Gateway", &["CLOUDFLARE_API_KEY"])
    },
    Provider {
        required: &["CLOUDFLARE_ACCOUNT_ID"],
        ..row("cloudflare-workers-ai", "Cloudflare Workers AI", &["CLOUDFLARE_API_KEY"])
    },
    row("deepseek", "DeepSeek", &["DEEPSEEK_API_KEY"]),
    Provider { ambient: Ambient::Open, ..row("faux", "Faux (no model)", &[]) },
    row("fireworks", "Fireworks", &["FIREWORKS_API_KEY"]),
    row("github-copilot", "GitHub Copilot", &["COPILOT_GITHUB_TOKEN"]),
    row("google", "Google Gemini", &["GEMINI_API_KEY"]),
    #[cfg(feature = "clouds")]
    Provider {
        optional: &[
            "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
        ],
        ambient: Ambient::Google,
        ..row("google-vertex", "Google Vertex AI", &["GOOGLE_CLOUD_API_KEY"])
    },
    row("groq", "Groq", &["GROQ_API_KEY"]),
    row("huggingface", "Hugging Face", &["HF_TOKEN"]),
    row("kimi-coding", "Kimi For Coding", &["KIMI_API_KEY"]),
    Provider {
        optional: &["LLAMA_BASE_URL"],
        ambient: Ambient::Open,
        ..row("llama.cpp", "llama.cpp", &["LLAMA_API_KEY"])
    },
    Provider {
        optional: &["PI_LOCAL_URL", "OLLAMA_HOST", "LLAMA_BASE_URL"],
        ambient: Ambient::Open,
        ..row("local", "Servers on this machine", &["PI_LOCAL_API_KEY", "LLAMA_API_KEY"])
    },
    row("meta", "Meta", &["META_API_KEY"]),
    row("minimax", "MiniMax", &["MINIMAX_API_KEY"]),
    row("minimax-cn", "MiniMax (China)", &["MINIMAX_CN_API_KEY"]),
    row("mistral", "Mistral", &["MISTRAL_API_KEY"]),
    row("moonshotai", "Moonshot AI", &["MOONSHOT_API_KEY"]),
    row("moonshotai-cn", "Moonshot AI (China)", &["MOONSHOT_API_KEY"]),
    row("nvidia", "NVIDIA", &["NVIDIA_API_KEY"]),
    row("openai", "OpenAI", &["OPENAI_API_KEY"]),
    row("openai-codex", "OpenAI Codex", &[]),
    row("opencode", "OpenCode Zen", &["OPENCODE_API_KEY"]),
    row("opencode-go", "OpenCode Go", &["OPENCODE_API_KEY"]),
    row("openrouter", "OpenRouter", &["OPENROUTER_API_KEY"]),
    row("qwen-token-plan", "Qwen Token Plan", &["QWEN_TOKEN_PLAN_API_KEY"]),
    row("qwen-token-plan-cn", "Qwen Token Plan (China)", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    row("qwen-token-plan-individual", "Qwen Token Plan Individual", &["QWEN_TOKEN_PLAN_API_KEY"]),
    row("qwen-token-plan-individual-cn", "Qwen Token Plan Individual (China)", &["QWEN_TOKEN_PLAN_CN_API_KEY"]),
    row("radius", "Radius", &["RADIUS_API_KEY"]),
    row("together", "Together AI", &["TOGETHER_API_KEY"]),
    row("typesafe", "TypeSafe", &["TYPESAFE_API_KEY"]),
    row("vercel-ai-gateway", "Vercel AI Gateway", &["AI_GATEWAY_API_KEY"]),
    row("xai", "xAI", &["XAI_API_KEY"]),
    row("xiaomi", "Xiaomi MiMo", &["XIAOMI_API_KEY"]),
    row("xiaomi-token-plan-ams", "Xiaomi MiMo Token Plan (Amsterdam)", &["XIAOMI_TOKEN_PLAN_AMS_API_KEY"]),
    row("xiaomi-token-plan-cn", "Xiaomi MiMo Token Plan (China)", &["XIAOMI_TOKEN_PLAN_CN_API_KEY"]),
    row("xiaomi-token-plan-sgp", "Xiaomi MiMo Token Plan (Singapore)", &["XIAOMI_TOKEN_PLAN_SGP_API_KEY"]),
    row("zai", "Z.AI Coding Plan", &["ZAI_API_KEY"]),
    row("zai-coding-cn", "Z.AI Coding Plan (China)", &["ZAI_CODING_CN_API_KEY"]),
];

/// The provider with this id; `None` for providers of models.json and extensions.
pub fn find(id: &str) -> Option<&'static Provider> {
    let id = provider_id(id);
    PROVIDERS.iter().find(|provider| provider.id == id)
}

impl Provider {
    /// True if the provider has a sign-in.
    pub fn has_sign_in(&self) -> bool {
        oauth::method(self.id, None).is_some()
    }

    /// The first variable that is set and may hold a key.
    pub fn key_variable(&self, env: &Env) -> Option<&'static str> {
        self.keys.iter().copied().find(|name| env.has(name))
    }

    /// Describes what replaces a key, if it is configured.
    pub fn ambient(&self, env: &Env) -> Option<&'static str> {
        match self.ambient {
            Ambient::None => None,
            Ambient::Open => Some("no key needed"),
            Ambient::Aws => aws(env),
            Ambient::Google => google(env).then_some("Google application default credentials"),
            Ambient::Federation => federation::is_configured(env).then_some("workload identity federation"),
        }
    }
}

/// True if a key can be stored for a provider, also for one that is not in the table.
pub fn takes_key(id: &str) -> bool {
    find(id).is_none_or(|row| !row.keys.is_empty())
}

/// The variables that hold keys of providers.
pub fn key_names() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().flat_map(|provider| provider.keys).chain(CLOUD_KEYS).copied()
}

/// Adds the keys in the environment to `vault`.
pub fn learn_keys(env: &Env, vault: &Vault) {
    for name in key_names() {
        vault.learn(name, &env.get(name).unwrap_or_default());
    }
}

/// Describes the source of AWS credentials that the environment names.
pub fn aws(env: &Env) -> Option<&'static str> {
    if env.has("AWS_PROFILE") {
        Some("environment variable AWS_PROFILE")
    } else if env.has("AWS_ACCESS_KEY_ID") && env.has("AWS_SECRET_ACCESS_KEY") {
        Some("environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    } else if env.has("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        || env.has("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    {
        Some("the AWS container's role")
    } else if env.has("AWS_WEB_IDENTITY_TOKEN_FILE") {
        Some("environment variable AWS_WEB_IDENTITY_TOKEN_FILE")
    } else {
        None
    }
}

fn google(env: &Env) -> bool {
    has_place(env) && gcp::credentials_file(env).is_some_and(|file| file.path.exists())
}

/// True if the environment names a project and a location for Vertex AI.
pub fn has_place(env: &Env) -> bool {
    (env.has("GOOGLE_CLOUD_PROJECT") || env.has("GCLOUD_PROJECT")) && env.has("GOOGLE_CLOUD_LOCATION")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        let ids: Vec<_> = PROVIDERS.iter().map(|provider| provider.id).collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(ids, sorted);
        // 42 with chat models in the catalogue, one with classifiers alone, and llama.cpp, local and faux.
        assert_eq!(ids.len(), 46);
        for provider in PROVIDERS {
            let reachable =
                !provider.keys.is_empty() || provider.has_sign_in() || provider.ambient == Ambient::Open;
            assert!(reachable, "{} has no way in", provider.id);
            let names = provider.keys.iter().chain(provider.required).chain(provider.optional);
            for name in names {
                let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_|".contains(c);
                assert!(name.chars().all(upper), "{name}");
            }
        }
    }

    #[test]
    fn the_first_variable_that_is_set_wins_and_empty_is_unset() {
        let anthropic = find("anthropic").unwrap();
        let env = Env::of([("ANTHROPIC_OAUTH_TOKEN", ""), ("ANTHROPIC_API_KEY", "k")]);
        assert_eq!(anthropic.key_variable(&env), Some("ANTHROPIC_API_KEY"));
        let env = Env::of([("ANTHROPIC_AUTH_TOKEN", "t"), ("ANTHROPIC_API_KEY", "k")]);
        assert_eq!(anthropic.key_variable(&env), Some("ANTHROPIC_AUTH_TOKEN"));
        assert_eq!(anthropic.key_variable(&Env::of([])), None);
    }

    #[test]
    fn cloud_identities_stand_in_for_a_key() {
        let bedrock = find("amazon-bedrock").unwrap();
        assert_eq!(bedrock.ambient(&Env::of([("AWS_ACCESS_KEY_ID", "a")])), None);
        let env = Env::of([("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")]);
        assert!(bedrock.ambient(&env).is_some());
        let vertex = find("google-vertex").unwrap();
        let here = std::env::current_exe().unwrap();
        let here = here.to_str().unwrap();
        let full = [
            ("GOOGLE_APPLICATION_CREDENTIALS", here),
            ("GCLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "l"),
        ];
        assert!(vertex.ambient(&Env::of(full)).is_some());
        assert!(vertex.ambient(&Env::of([full[0], full[1]])).is_none());
    }
}
