//! Controls how much freed memory the allocator keeps.

/// Makes the allocator return the memory of large blocks to the system when they are freed.
///
/// glibc by default counts a block as large only if it is larger than every block freed before. The requests
/// of a long conversation keep growing, so their memory would stay with the process.
pub fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const LARGE_BYTES: libc::c_int = 512 << 10;
        // SAFETY: sets numbers of the allocator, before a second thread runs.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * LARGE_BYTES);
        }
    }
}

/// Resident memory of a process, in bytes, where the system tells.
pub fn resident_bytes(pid: libc::pid_t) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
