fn main() -> std::process::ExitCode {
    pi::cli::main()
}
