//! The region of a request, and the endpoints of AWS services.

use super::profile::{Profile, Profiles};
use crate::base::env::Env;
use crate::llm::model::Model;

const DEFAULT: &str = "us-east-1";

/// A prefix of region names, the domain of its AWS partition, and the domain of dual-stack endpoints.
const DOMAINS: &[(&str, &str, &str)] = &[
    ("cn-", "amazonaws.com.cn", "api.amazonwebservices.com.cn"),
    ("eusc-", "amazonaws.eu", "api.amazonwebservices.eu"),
    ("eu-isoe-", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk"),
    ("us-iso-", "c2s.ic.gov", "api.aws.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov", "api.aws.scloud"),
    ("us-isof-", "csp.hci.ic.gov", "api.aws.hci.ic.gov"),
    ("", "amazonaws.com", "api.aws"),
];

/// The region in the model's ARN; otherwise in the environment, in the profile, or in the model's base URL;
/// by default `us-east-1`.
pub fn region(model: &Model, env: &Env, profile: Option<&Profile>) -> String {
    let configured = env.get("AWS_REGION").or_else(|| env.get("AWS_DEFAULT_REGION"));
    let profile = || profile?.get("region").map(str::to_owned);
    let own = || standard(&model.base_url).map(str::to_owned);
    let region = arn(&model.id).map(str::to_owned).or(configured);
    let region = region.or_else(profile).or_else(own);
    // The region becomes a part of host names.
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '-';
    region.filter(|region| region.chars().all(legal)).unwrap_or_else(|| DEFAULT.to_owned())
}

/// The endpoint for a model: its base URL if that is not an AWS address, otherwise the configured endpoint,
/// otherwise the default endpoint of the region.
pub fn endpoint(model: &Model, env: &Env, profiles: &Profiles, profile: &str, region: &str) -> String {
    let Some(own) = standard(&model.base_url) else {
        return model.base_url.clone();
    };
    if let Some(url) = configured(env, "BEDROCK_RUNTIME") {
        return url;
    }
    if !ignores_configured(env)
        && let Some(url) = profiles.endpoint(profile, "bedrock_runtime")
    {
        return url.to_owned();
    }
    let on = |name: &str| env.get(name).as_deref() == Some("true");
    let (fips, dual) = (on("AWS_USE_FIPS_ENDPOINT"), on("AWS_USE_DUALSTACK_ENDPOINT"));
    if own == region && !fips && !dual {
        return model.base_url.clone();
    }
    let fips = if fips { "-fips" } else { "" };
    let (domain, dual_domain) = domains(region);
    let domain = if dual { dual_domain } else { domain };
    format!("https://bedrock-runtime{fips}.{region}.{domain}")
}

/// The endpoint of another AWS service. `name` is the service's name in variables (`STS`), `host` its name in
/// host names.
pub fn service(env: &Env, name: &str, host: &str, region: &str) -> String {
    configured(env, name).unwrap_or_else(|| format!("https://{host}.{region}.{}", domains(region).0))
}

fn configured(env: &Env, service: &str) -> Option<String> {
    let url = env.get(&format!("AWS_ENDPOINT_URL_{service}")).or_else(|| env.get("AWS_ENDPOINT_URL"))?;
    (!ignores_configured(env)).then(|| url.trim_end_matches('/').to_owned())
}

fn ignores_configured(env: &Env) -> bool {
    env.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").as_deref() == Some("true")
}

fn domains(region: &str) -> (&'static str, &'static str) {
    let mut rows = DOMAINS.iter();
    let row = rows.find(|(start, ..)| region.starts_with(start));
    row.map_or(("amazonaws.com", "api.aws"), |(_, domain, dual)| (domain, dual))
}

/// The region of an ARN such as `arn:aws:bedrock:eu-west-1:…`.
fn arn(id: &str) -> Option<&str> {
    let mut parts = id.split(':');
    let (arn, partition, service) = (parts.next()?, parts.next()?, parts.next()?);
    let region = parts.next().filter(|region| !region.is_empty())?;
    parts.next()?;
    let known = arn == "arn" && service == "bedrock";
    let aws = partition == "aws" || partition.starts_with("aws-");
    (known && aws).then_some(region)
}

/// The region in a Bedrock endpoint of AWS; `None` for other URLs.
fn standard(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let host = rest.split(['/', ':', '?']).next()?;
    let rest = host.strip_prefix("bedrock-runtime")?;
    let rest = rest.strip_prefix("-fips").unwrap_or(rest).strip_prefix('.')?;
    let (region, domain) = rest.split_once('.')?;
    matches!(domain, "amazonaws.com" | "amazonaws.com.cn").then_some(region)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "https://bedrock-runtime.us-east-1.amazonaws.com";

    #[track_caller]
    fn check<const N: usize>(id: &str, base_url: &str, variables: [(&str, &str); N], expected: (&str, &str)) {
        let model = Model { id: id.into(), base_url: base_url.into(), ..Model::default() };
        let env = Env::of(variables);
        let region = region(&model, &env, None);
        let endpoint = endpoint(&model, &env, &Profiles::default(), "default", &region);
        assert_eq!((region.as_str(), endpoint.as_str()), expected);
    }

    #[test]
    fn regions_and_addresses() {
        let eu = "https://bedrock-runtime.eu-west-1.amazonaws.com";
        let region = ("AWS_REGION", "eu-west-1");
        check("m", OWN, [], ("us-east-1", OWN));
        check("m", eu, [], ("eu-west-1", eu));
        check("m", OWN, [region], ("eu-west-1", eu));
        check("m", OWN, [("AWS_DEFAULT_REGION", "eu-west-1")], ("eu-west-1", eu));
        check("m", OWN, [region, ("AWS_DEFAULT_REGION", "x")], ("eu-west-1", eu));
        check("m", OWN, [("AWS_REGION", "evil.test/")], ("us-east-1", OWN));
        let arn = "arn:aws:bedrock:eu-west-1:123:application-inference-profile/x";
        check(arn, OWN, [("AWS_REGION", "us-west-2")], ("eu-west-1", eu));
        check("arn:aws:sagemaker:eu-west-1:1:x", OWN, [], ("us-east-1", OWN));
        let china = "https://bedrock-runtime.cn-north-1.amazonaws.com.cn";
        check("arn:aws-cn:bedrock:cn-north-1:1:x", OWN, [], ("cn-north-1", china));
        let fips = "https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com";
        let gov = ("AWS_REGION", "us-gov-west-1");
        check("m", OWN, [gov, ("AWS_USE_FIPS_ENDPOINT", "true")], ("us-gov-west-1", fips));
        let dual = "https://bedrock-runtime.us-east-1.api.aws";
        check("m", OWN, [("AWS_USE_DUALSTACK_ENDPOINT", "true")], ("us-east-1", dual));
    }

    #[test]
    fn an_address_of_the_user_s_own_comes_first() {
        let own = "https://vpce-1.test/bedrock";
        let proxy = ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://proxy:1/");
        let region = ("AWS_REGION", "eu-west-1");
        check("m", own, [region, proxy], ("eu-west-1", own));
        check("m", OWN, [region, proxy], ("eu-west-1", "http://proxy:1"));
        check("m", OWN, [("AWS_ENDPOINT_URL", "http://all:1")], ("us-east-1", "http://all:1"));
        let ignored = ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
        check("m", OWN, [proxy, ignored], ("us-east-1", OWN));
    }

    #[test]
    fn other_services() {
        let env = Env::of([("AWS_ENDPOINT_URL_STS", "http://sts:1")]);
        assert_eq!(service(&env, "STS", "sts", "eu-west-1"), "http://sts:1");
        let oidc = service(&env, "SSO_OIDC", "oidc", "cn-north-1");
        assert_eq!(oidc, "https://oidc.cn-north-1.amazonaws.com.cn");
    }
}
