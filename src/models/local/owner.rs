//! Determines which user runs the server on a local port.
//!
//! On a machine with several users, anybody can listen on a well-known port, and would receive prompts and
//! answer with tool calls that are run. Linux shows the user of each listening socket. Other systems show it
//! to administrators only; there every server counts as trusted.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// User ids below this number are system accounts: Ollama's package runs its server as one.
const SYSTEM_USERS: u32 = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This user, root or a system account; also if the system does not show the users of sockets.
    Machine,
    User(u32),
    /// Unknown: the server has ended, or is in another network namespace.
    Hidden,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine => f.write_str("this machine"),
            Self::User(uid) => match name(*uid) {
                Some(name) => write!(f, "the user {name} (uid {uid})"),
                None => write!(f, "the user with uid {uid}"),
            },
            Self::Hidden => f.write_str("a user that cannot be told"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    address: IpAddr,
    port: u16,
    uid: u32,
}

/// All listening sockets of this machine; `all` is `None` if the system does not show them.
#[derive(Clone, Debug)]
pub struct Listeners {
    all: Option<Vec<Listener>>,
    user: u32,
}

impl Listeners {
    pub fn now() -> Self {
        // SAFETY: takes nothing and cannot fail.
        let user = unsafe { libc::geteuid() };
        let read = |name: &str| std::fs::read_to_string(format!("/proc/self/net/{name}")).ok();
        let all = read("tcp").map(|four| {
            // A kernel without IPv6 has no tcp6.
            let mut all = parse(&four);
            all.extend(parse(&read("tcp6").unwrap_or_default()));
            all
        });
        Self { all, user }
    }

    /// The owner of the server at `host` (a loopback address or `localhost`) and `port`.
    pub fn owner(&self, host: &str, port: u16) -> Owner {
        let Some(all) = &self.all else {
            return Owner::Machine;
        };
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        };
        let owners = addresses.iter().flat_map(|address| self.users(all, *address, port));
        let worst = owners.max_by_key(|uid| self.is_stranger(*uid));
        match worst {
            None => Owner::Hidden,
            Some(uid) if self.is_stranger(uid) => Owner::User(uid),
            Some(_) => Owner::Machine,
        }
    }

    fn is_stranger(&self, uid: u32) -> bool {
        uid != self.user && uid >= SYSTEM_USERS
    }

    /// The users of the sockets that accept connections to `address`: those bound to this address, otherwise
    /// those bound to all addresses.
    fn users(&self, all: &[Listener], address: IpAddr, port: u16) -> Vec<u32> {
        let here = || all.iter().filter(|listener| listener.port == port);
        let exact: Vec<u32> =
            here().filter(|listener| listener.address == address).map(|listener| listener.uid).collect();
        if !exact.is_empty() {
            return exact;
        }
        // A socket for all IPv6 addresses also accepts IPv4 connections, unless configured otherwise.
        let takes = |listener: &&Listener| {
            listener.address.is_unspecified() && (listener.address.is_ipv6() || address.is_ipv4())
        };
        here().filter(takes).map(|listener| listener.uid).collect()
    }
}

/// The listening sockets in a table of the kernel: `/proc/net/tcp` or `/proc/net/tcp6`.
fn parse(table: &str) -> Vec<Listener> {
    const LISTENS: &str = "0A";
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let (address, port) = words.nth(1)?.split_once(':')?;
        // Columns: remote address, state, queues, timer, retransmissions, user.
        let state = words.nth(1)?;
        let uid = words.nth(3)?.parse().ok()?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (state == LISTENS).then_some(Listener { address: parse_address(address)?, port, uid })
    };
    table.lines().filter_map(row).collect()
}

/// An address as the kernel writes it: 32-bit words in native byte order.
fn parse_address(text: &str) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    for at in (0..text.len()).step_by(8) {
        let word = u32::from_str_radix(text.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Some(Ipv4Addr::from(four).into());
    }
    let six = <[u8; 16]>::try_from(bytes.as_slice()).ok()?;
    // An IPv4 address in the IPv6 table.
    Some(IpAddr::from(Ipv6Addr::from(six)).to_canonical())
}

/// The name of a user in `/etc/passwd`.
fn name(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let wanted = uid.to_string();
    let row = users.lines().find(|line| line.split(':').nth(2) == Some(&wanted))?;
    row.split(':').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    /// Formats 32-bit words in native byte order, as the kernel does.
    fn hex(bytes: &[u8]) -> String {
        let word = |word: &[u8]| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap()));
        bytes.chunks(4).map(word).collect()
    }

    fn row(address: &str, port: u16, state: &str, uid: u32) -> String {
        let address = match address.parse().unwrap() {
            IpAddr::V4(four) => hex(&four.octets()),
            IpAddr::V6(six) => hex(&six.octets()),
        };
        format!(
            "   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  {uid}        0 1 1 0000000000000000 100 0 0 10 0\n"
        )
    }

    #[track_caller]
    fn check(rows: &[(&str, &str, u32)], host: &str, expected: Owner) {
        let table: String =
            rows.iter().map(|(address, state, uid)| row(address, 11434, state, *uid)).collect();
        let table = format!("{HEAD}{table}{}", row("127.0.0.1", 80, "0A", 4000));
        let listeners = Listeners { all: Some(parse(&table)), user: 1500 };
        assert_eq!(listeners.owner(host, 11434), expected, "{rows:?} {host}");
    }

    #[test]
    fn a_server_of_this_user_or_of_the_system_is_the_machines_own() {
        let four = "127.0.0.1";
        for uid in [0, 1500, 998] {
            check(&[(four, "0A", uid)], four, Owner::Machine);
        }
        for uid in [1000, 1234, 65534] {
            check(&[(four, "0A", uid)], four, Owner::User(uid));
        }
        check(&[], four, Owner::Hidden);
        // Not listening: an open connection, and a closed one.
        check(&[(four, "01", 1500), (four, "06", 0)], four, Owner::Hidden);
    }

    #[test]
    fn every_socket_that_could_be_reached_counts() {
        let (own, other) = (1500, 1234);
        for any in ["0.0.0.0", "::", "::ffff:0.0.0.0"] {
            check(&[(any, "0A", other)], "127.0.0.1", Owner::User(other));
            check(&[(any, "0A", own)], "127.0.0.1", Owner::Machine);
        }
        check(&[("::ffff:127.0.0.1", "0A", other)], "127.0.0.1", Owner::User(other));
        // The socket bound to this address receives the connection.
        check(&[("::", "0A", other), ("127.0.0.1", "0A", own)], "127.0.0.1", Owner::Machine);
        check(&[("0.0.0.0", "0A", own), ("127.0.0.1", "0A", other)], "127.0.0.1", Owner::User(other));
        check(&[("127.0.0.2", "0A", other)], "127.0.0.1", Owner::Hidden);
        check(&[("0.0.0.0", "0A", other)], "::1", Owner::Hidden);
        // A name may lead to either.
        check(&[("127.0.0.1", "0A", own), ("::1", "0A", other)], "localhost", Owner::User(other));
    }

    #[test]
    fn without_a_table_every_server_is_the_machines_own() {
        let listeners = Listeners { all: None, user: 1 };
        assert_eq!(listeners.owner("127.0.0.1", 1), Owner::Machine);
    }

    #[test]
    fn a_damaged_table_has_no_rows() {
        for table in [
            "",
            HEAD,
            "0: x",
            "0: 0100007F 0:0 0A 0 0 0 0",
            "0: 0100007:1F 0:0 0A 0 0 0 0",
            "é: éé:1 a 0A 0 0 0 5",
        ] {
            assert_eq!(parse(table), [], "{table}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_socket_of_this_process_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(Listeners::now().owner("127.0.0.1", port), Owner::Machine);
        drop(listener);
        assert_eq!(Listeners::now().owner("127.0.0.1", port), Owner::Hidden);
    }
}
