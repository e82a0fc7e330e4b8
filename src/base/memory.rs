//! What the allocator keeps of memory that was freed.

/// Has the memory of large blocks given back to the system as soon as they are freed.
///
/// glibc by default counts a block as large only when it is larger than every block that was freed before. The request
/// of a long conversation is larger than the one before it each time, so its memory would stay with the process.
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
