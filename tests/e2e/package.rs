//! Packages: installed with a scripted npm and the real git, and used by a session.

use crate::agent::{Outcome, Pi, World, write_program};
use crate::screen::Screen;
use crate::server::Reply;
use crate::world;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Notes its arguments, and installs a package for each `name@version` among them; version 1.0.0 for none, and
/// `$HOME/latest` for `latest`. A name that begins with `bad` fails.
const NPM: &str = r#"#!/bin/sh
printf '%s\n' "$*" >> "$HOME/npm.log"
env | grep -c API_KEY >> "$HOME/npm.keys"
latest=$(cat "$HOME/latest" 2>/dev/null || echo 1.0.0)
if [ "$1" = view ]; then printf '"%s"\n' "$latest"; exit 0; fi
command=$1; shift; root=.; specs=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) root=$2; shift ;;
    -*) ;;
    *) specs="$specs $1" ;;
  esac
  shift
done
for spec in $specs; do
  case $spec in bad*) echo "npm error 404 $spec" >&2; exit 1 ;; esac
  name=${spec%@*}; version=${spec##*@}
  case $spec in @*@*) ;; @*) name=$spec; version=1.0.0 ;; *@*) ;; *) name=$spec; version=1.0.0 ;; esac
  [ "$version" = latest ] && version=$latest
  if [ "$command" = uninstall ]; then rm -rf "$root/node_modules/$name"; continue; fi
  mkdir -p "$root/node_modules/$name/prompts" "$root/node_modules/$name/skills/from-npm"
  printf '{"name":"%s","version":"%s"}' "$name" "$version" > "$root/node_modules/$name/package.json"
  printf 'From %s' "$version" > "$root/node_modules/$name/prompts/pkg.md"
  printf -- '---\nname: from-npm\ndescription: of a package\n---\n' > "$root/node_modules/$name/skills/from-npm/SKILL.md"
done
"#;

/// A world with the scripted npm.
fn with_npm(world: &World) {
    let npm = world.home().join("npm");
    write_program(&npm, NPM);
    settings(world, &json!({"npmCommand": [npm], "retry": {"enabled": false}}));
}

fn settings(world: &World, value: &Value) {
    world.write_config("settings.json", &value.to_string());
}

fn packages(world: &World) -> Value {
    let text = fs::read_to_string(world.agent_dir().join("settings.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["packages"].take()
}

fn run(world: &World, words: &str) -> Outcome {
    world.pi().words(words).env("OPENAI_API_KEY", "sk-1").run()
}

fn log(world: &World) -> String {
    fs::read_to_string(world.home().join("npm.log")).unwrap_or_default()
}

/// The commands of a session by name, with their `sourceInfo`.
fn commands(pi: Pi<'_>) -> Vec<(String, Value)> {
    let outcome = pi.words("--mode rpc --no-mcp").stdin("{\"type\":\"get_commands\"}\n").run().success();
    let answer: Value = serde_json::from_str(outcome.stdout.lines().next().unwrap()).unwrap();
    let commands = answer["data"]["commands"].as_array().unwrap().clone();
    commands
        .into_iter()
        .map(|mut c| (c["name"].as_str().unwrap().to_owned(), c["sourceInfo"].take()))
        .collect()
}

fn names(pi: Pi<'_>) -> Vec<String> {
    commands(pi).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_package_of_npm_is_installed_used_updated_and_removed() {
    let (world, _server) = world([]);
    with_npm(&world);
    run(&world, "list").success().stdout_is("No packages installed.\n");
    run(&world, "install npm:@a/b").success().stdout_is("Installing npm:@a/b...\nInstalled npm:@a/b\n");
    assert_eq!(packages(&world), json!(["npm:@a/b"]));
    let root = world.agent_dir().join("npm");
    let place = root.join("node_modules/@a/b");
    assert_eq!(
        log(&world),
        format!(
            "install @a/b --prefix {} --legacy-peer-deps --no-audit --no-fund --ignore-scripts\n",
            root.display()
        )
    );
    assert_eq!(fs::read_to_string(world.home().join("npm.keys")).unwrap(), "0\n", "npm gets no keys");
    assert_eq!(fs::read_to_string(root.join(".gitignore")).unwrap(), "*\n!.gitignore\n");
    let project: Value = serde_json::from_slice(&fs::read(root.join("package.json")).unwrap()).unwrap();
    assert_eq!(project, json!({"name": "pi-extensions", "private": true}));
    run(&world, "list")
        .success()
        .stdout_is(&format!("User packages:\n  npm:@a/b\n    {}\n", place.display()));
    let info = json!({"path": place.join("prompts/pkg.md"), "source": "npm:@a/b", "scope": "user",
        "origin": "package", "baseDir": place});
    let found = commands(world.pi());
    assert!(found.contains(&("pkg".into(), info)), "{found:?}");
    assert!(
        found.iter().any(|(name, info)| name == "skill:from-npm" && info["origin"] == "package"),
        "{found:?}"
    );

    run(&world, "update --extensions").success().stdout_is("Packages are already up to date\n");
    fs::write(world.home().join("latest"), "1.1.0").unwrap();
    run(&world, "update --extensions").success().stdout_is("Updated 1 package:\n  npm:@a/b 1.0.0 -> 1.1.0\n");
    assert!(log(&world).contains("install @a/b@latest --prefix"), "{}", log(&world));
    run(&world, "update @a/b")
        .fails_with(1)
        .stderr_has("No matching package found for @a/b. Did you mean npm:@a/b?");

    // An exact version takes the place of the entry, and stays.
    run(&world, "install npm:@a/b@1.0.5 --scripts").success();
    assert_eq!(packages(&world), json!(["npm:@a/b@1.0.5"]));
    assert!(!log(&world).lines().last().unwrap().contains("--ignore-scripts"), "{}", log(&world));
    let before = log(&world);
    run(&world, "update --extensions").success().stdout_is("Packages are already up to date\n");
    assert_eq!(log(&world), before, "a pinned version needs no look at the registry");

    run(&world, "uninstall npm:@a/b").success().stdout_is("Removing npm:@a/b...\nRemoved npm:@a/b\n");
    assert_eq!((packages(&world), place.exists()), (json!([]), false));
    run(&world, "remove npm:@a/b").fails_with(1).stderr_has("No matching package found for npm:@a/b");
}

#[test]
fn what_cannot_be_installed_changes_no_settings() {
    let world = World::new();
    with_npm(&world);
    for (words, said) in [
        ("install", "Missing install source.\nUsage: pi install <source>"),
        ("remove", "Missing remove source."),
        ("install npm:a npm:b", "Unexpected argument npm:b."),
        ("install npm:a --force", "Unknown option --force for \"install\"."),
        ("list -l", "Unknown option -l for \"list\"."),
        ("update --all npm:a", "--all cannot be combined with a positional source"),
        ("update --extension", "Missing value for --extension."),
        ("install npm:../x", "is no source of a package"),
        ("install ./nowhere", "Path does not exist: "),
        ("install npm:bad", "npm error 404 bad"),
        ("install npm:a --offline", "Could not install npm:a: --offline allows no network"),
    ] {
        run(&world, words).fails_with(1).stderr_has(said);
        assert_eq!(packages(&world), Value::Null, "{words}");
    }
    world
        .pi()
        .words("install git:h.org/u/r")
        .env("PI_OFFLINE", "1")
        .run()
        .fails_with(1)
        .stderr_has("PI_OFFLINE");
    world
        .pi()
        .words("update --extensions --offline")
        .run()
        .success()
        .stdout_is("Skipped package updates (offline mode)\n");
    settings(&world, &json!({"npmCommand": ["no-such-npm"]}));
    run(&world, "install npm:a").fails_with(1).stderr_has("no-such-npm is needed, and is not in PATH");
    for words in ["install --help", "remove -h", "list --help", "update --help"] {
        let help = run(&world, words).success().stdout;
        assert!(help.contains("Usage:") && help.contains(words.split(' ').next().unwrap()), "{help}");
    }
}

#[test]
fn missing_packages_are_named_and_never_fetched() {
    let (world, _server) = world([Reply::text("hi")]);
    with_npm(&world);
    let npm = world.home().join("npm");
    settings(
        &world,
        &json!({"npmCommand": [npm], "packages": ["npm:a", "../../gone", {"source": "npm:b@2.0.0"}, 7]}),
    );
    let outcome = world.pi().words("-p hello").run().success();
    for said in [
        "Run: pi install npm:a",
        "Package ../../gone does not exist",
        "Run: pi install npm:b@2.0.0",
        "7 names no source",
    ] {
        assert!(outcome.stderr.contains(said), "{said} is not in {}", outcome.stderr);
    }
    assert_eq!(log(&world), "");
    run(&world, "update --extensions")
        .success()
        .stdout_is("Updated 2 packages:\n  npm:a (none) -> 1.0.0\n  npm:b@2.0.0 (none) -> 2.0.0\n");
}

#[cfg(feature = "extensions")]
#[test]
fn a_file_url_is_the_path_that_it_names() {
    let (world, server) = world([Reply::text("done")]);
    let folder = world.home().join("my tools");
    fs::create_dir_all(folder.join("prompts")).unwrap();
    fs::write(folder.join("prompts/greet.md"), "Greet the world").unwrap();
    let url = format!("file://{}/my%20tools", world.home().display());
    run(&world, &format!("install {url}"))
        .success()
        .stdout_is(&format!("Installing {url}...\nInstalled {url}\n"));
    let installed = packages(&world)[0].as_str().unwrap().to_owned();
    assert_eq!(world.agent_dir().join(&installed).canonicalize().unwrap(), folder.canonicalize().unwrap());
    let program = folder.join("program");
    write_program(
        &program,
        &crate::extension::script(&crate::extension::registers(&crate::extension::hello())),
    );
    let named = format!("--model mock/m1 -e {url}/program -p /greet");
    world.pi().words(&named).run().success().stdout_is("done\n");
    let body = server.requests()[0].body.to_string();
    assert!(body.contains("Greet the world") && body.contains("\"hello\""), "{body}");
}

#[test]
fn a_project_has_packages_of_its_own() {
    let (world, _server) = world([]);
    with_npm(&world);
    world.write("tools/prompts/here.md", "Here");
    world.write("tools/prompts/there.md", "There");
    run(&world, "install npm:a -l").success();
    // What was installed before asks for trust.
    run(&world, "install ./tools -l").fails_with(1).stderr_has("Project is not trusted. Use --approve");
    run(&world, "install ./tools -l -a").success().stdout_is("Installing ./tools...\nInstalled ./tools\n");
    assert_eq!(
        serde_json::from_str::<Value>(&world.read(".pi/settings.json")).unwrap(),
        json!({"packages": ["npm:a", "../tools"]})
    );
    assert_eq!(world.read(".pi/npm/.gitignore"), "*\n!.gitignore\n");
    let list = run(&world, "list -a").success().stdout;
    let (npm, tools) = (world.work().join(".pi/npm/node_modules/a"), world.work().join("tools"));
    assert_eq!(
        list,
        format!("Project packages:\n  npm:a\n    {}\n  ../tools\n    {}\n", npm.display(), tools.display())
    );
    run(&world, "list").success().stdout_is("No packages installed.\n");
    assert!(names(world.pi()).is_empty());
    assert_eq!(names(world.pi().words("--approve")), ["pkg", "here", "there", "skill:from-npm"]);
    run(&world, "remove ./tools -l -a").success();
    assert!(tools.exists() && !world.read(".pi/settings.json").contains("tools"));
}

/// Runs git in a folder of the world.
fn git(world: &World, folder: &Path, words: &str) -> String {
    let ran = Command::new("git")
        .args(words.split(' '))
        .current_dir(folder)
        .env("HOME", world.home())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {words}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().trim().to_owned()
}

/// Makes the repository `u/r` of the host `h.org`, which git finds in the world, with a commit and the tag `v1`.
fn repository(world: &World) -> std::path::PathBuf {
    let remote = world.home().join("remote/u/r");
    fs::create_dir_all(remote.join("prompts")).unwrap();
    fs::write(
        world.home().join(".gitconfig"),
        format!(
            "[user]\nname = a\nemail = a@b\n[init]\ndefaultBranch = main\n[url \"{}/\"]\ninsteadOf = https://h.org/\n",
            world.home().join("remote").display()
        ),
    )
    .unwrap();
    git(world, &remote, "init -q");
    commit(world, &remote, "one");
    git(world, &remote, "tag v1");
    remote
}

fn commit(world: &World, remote: &Path, text: &str) {
    fs::write(remote.join("prompts/git.md"), text).unwrap();
    git(world, remote, "add -A");
    git(world, remote, &format!("commit -q -m {text}"));
}

#[test]
fn a_package_of_git_follows_its_branch_and_a_pinned_one_stays() {
    let (world, _server) = world([]);
    with_npm(&world);
    let remote = repository(&world);
    let place = world.agent_dir().join("git/h.org/u/r");
    let text = || fs::read_to_string(place.join("prompts/git.md")).unwrap();
    run(&world, "install git:h.org/u/r").success();
    assert_eq!((packages(&world), text()), (json!(["git:h.org/u/r"]), "one".into()));
    assert_eq!(names(world.pi()), ["git"]);
    let before = git(&world, &place, "rev-parse HEAD");
    commit(&world, &remote, "two");
    // A file of somebody else is in the way of nothing.
    fs::write(place.join("stray"), "").unwrap();
    let after = git(&world, &remote, "rev-parse HEAD");
    run(&world, "update git:h.org/u/r").success().stdout_is(&format!(
        "Updated 1 package:\n  git:h.org/u/r {} -> {}\n",
        &before[..7],
        &after[..7]
    ));
    assert_eq!((text(), place.join("stray").exists()), ("two".into(), false));
    run(&world, "update git:h.org/u/r").success().stdout_is("git:h.org/u/r is already up to date\n");

    run(&world, "install https://h.org/u/r@v1").success();
    assert_eq!((packages(&world), text()), (json!(["https://h.org/u/r@v1"]), "one".into()));
    // The tag is moved, the package is not.
    git(&world, &remote, "tag -f v1");
    run(&world, "update --extensions").success().stdout_is("Packages are already up to date\n");
    assert_eq!(text(), "one");
    run(&world, &format!("install git:h.org/u/r@{after}")).success();
    assert_eq!(text(), "two");
    fs::rename(&remote, remote.with_file_name("gone")).unwrap();
    run(&world, "update --extensions").success().stdout_is("Packages are already up to date\n");

    run(&world, "remove git:h.org/u/r").success();
    assert!(!world.agent_dir().join("git/h.org").exists());
    run(&world, "install git:h.org/u/r").fails_with(1).stderr_has("git clone");
    assert!(!world.agent_dir().join("git/h.org").exists(), "nothing is left of a clone that failed");
    assert_eq!(packages(&world), json!([]));
}

#[test]
fn what_a_git_package_depends_on_is_installed() {
    let world = World::new();
    with_npm(&world);
    let remote = repository(&world);
    fs::write(remote.join("package.json"), r#"{"name": "r", "dependencies": {"bad": "1"}}"#).unwrap();
    commit(&world, &remote, "two");
    run(&world, "install git:h.org/u/r").success();
    assert_eq!(log(&world), "install --omit=dev --legacy-peer-deps --no-audit --no-fund --ignore-scripts\n");
    // What is missing is installed by the next update.
    run(&world, "update --extensions").success();
    assert_eq!(log(&world).lines().count(), 2);
}

#[test]
fn a_source_on_the_command_line_is_for_one_run() {
    let (world, _server) = world([]);
    with_npm(&world);
    let remote = repository(&world);
    world.write("tools/prompts/here.md", "Here");
    let temporary = world.agent_dir().join("tmp/extensions");
    let offline = world.pi().words("-e npm:a --offline -p hi").run();
    offline.fails_with(1).stderr_has("Could not install npm:a: --offline allows no network");
    let used = commands(world.pi().words("-e npm:a -e git:h.org/u/r@v1 -e ./tools"));
    let order: Vec<&str> = used.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(order, ["pkg", "git", "here", "skill:from-npm"]);
    let place = temporary.join("npm/f35b2129/node_modules/a");
    assert_eq!(
        used[0].1,
        json!({"path": place.join("prompts/pkg.md"), "source": "npm:a", "scope": "temporary",
            "origin": "package", "baseDir": place})
    );
    assert_eq!(used[3].1["source"], "cli");
    assert_eq!(packages(&world), Value::Null);
    // A newer version is fetched at the next start; without network what is there is used.
    fs::write(world.home().join("latest"), "1.1.0").unwrap();
    assert_eq!(names(world.pi().words("-e npm:a")), ["pkg", "skill:from-npm"]);
    assert_eq!(fs::read_to_string(place.join("prompts/pkg.md")).unwrap(), "From 1.1.0");
    let before = log(&world);
    fs::rename(&remote, remote.with_file_name("gone")).unwrap();
    assert_eq!(
        names(world.pi().words("--offline -e npm:a -e git:h.org/u/r@v1")),
        ["pkg", "git", "skill:from-npm"]
    );
    assert_eq!(log(&world), before);
    world.pi().words("-e ./gone -p hi").run().fails_with(1).stderr_has("Extension path does not exist");
}

#[test]
fn resources_are_listed_where_there_is_no_terminal() {
    let world = World::new();
    with_npm(&world);
    run(&world, "config").success().stdout_is("No resources found\n");
    run(&world, "install npm:a").success();
    fs::create_dir_all(world.agent_dir().join("skills/own")).unwrap();
    fs::write(world.agent_dir().join("skills/own/SKILL.md"), "---\ndescription: x\n---\n").unwrap();
    let own = format!("User ({}/)\n  skills\n    [x] own\n", world.agent_dir().display());
    let package = "npm:a (user)\n  skills\n    [x] from-npm\n  prompts\n    [x] pkg.md\n";
    run(&world, "config").success().stdout_is(&format!("{package}{own}"));
    world.write(
        ".pi/settings.json",
        r#"{"packages": [{"source": "npm:a", "autoload": false, "prompts": ["-prompts/pkg.md"]}]}"#,
    );
    run(&world, "config -l")
        .fails_with(1)
        .stderr_has("Project is not trusted. Use --approve to modify local resource config.");
    let project = run(&world, "config -l -a").success().stdout;
    assert!(project.contains("npm:a (project)\n  prompts\n    [-] pkg.md\n"), "{project}");
}

#[test]
fn resources_are_switched_in_the_terminal() {
    let world = World::new();
    with_npm(&world);
    run(&world, "install npm:a").success();
    world.write("x.txt", "");
    let screen = Screen::start(world.pi().words("config"));
    screen.wait_for("[x] from-npm");
    screen.type_keys(" ");
    screen.wait_for("[ ] from-npm");
    assert_eq!(packages(&world), json!([{"source": "npm:a", "skills": ["-skills/from-npm/SKILL.md"]}]));
    screen.type_keys("\t");
    screen.wait_for("Project resources");
    screen.type_keys("\r");
    screen.wait_for("[+] from-npm");
    screen.type_keys("\x1b");
    let (status, _) = screen.wait();
    assert!(status.success(), "{status}");
    assert_eq!(
        serde_json::from_str::<Value>(&world.read(".pi/settings.json")).unwrap(),
        json!({"packages": [{"source": "npm:a", "autoload": false, "skills": ["+skills/from-npm/SKILL.md"]}]})
    );
}
