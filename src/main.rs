/// Runs before the standard library does.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = pi::look;

fn main() -> std::process::ExitCode {
    pi::main()
}
