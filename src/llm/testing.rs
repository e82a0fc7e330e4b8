//! For tests: a scripted server on loopback, with TLS where a script wants it.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// The root that signed the certificate of [`Connection::tls`].
pub const ROOT: &str = "\
-----BEGIN CERTIFICATE-----
MIIBIDCB06ADAgECAgEBMAUGAytlcDAXMRUwEwYDVQQDDAxwaSB0ZXN0IHJvb3Qw
IBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBcxFTATBgNVBAMMDHBp
IHRlc3Qgcm9vdDAqMAUGAytlcAMhAKsVAN4QjJTqYF9rVO9txPXlOU+kJLvuDetI
zjBI8Cuno0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1UdDwEB/wQEAwICBDAdBgNV
HQ4EFgQU5vu0di59Q6CO06og/oh8HpRt4MwwBQYDK2VwA0EA6ynQs2SEcwHduYg2
mWGWGhV3k4UqkfT4o1dEiUkQyp21neUl32mfIpgN7rJzreriQvj5YY4OA1EYmKUl
Ylk9Dw==
-----END CERTIFICATE-----
";

/// For `localhost` and 127.0.0.1, until the year 2120.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBWjCCAQygAwIBAgIBAjAFBgMrZXAwFzEVMBMGA1UEAwwMcGkgdGVzdCByb290
MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAls
b2NhbGhvc3QwKjAFBgMrZXADIQAeCPVw9sNaf2CKWIm8LA9kbxLpP7XkSVyWgI0V
jqjQqaN+MHwwGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAkGA1UdEwQCMAAw
EwYDVR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0OBBYEFEGChnWURwDzaMmHPyOBWCSb
dt7yMB8GA1UdIwQYMBaAFOb7tHYufUOgjtOqIP6IfB6UbeDMMAUGAytlcANBAJP1
je00n+ddz/MytEHFRxQDsGy322e3gDPkGzVDxPJu1Mb23hvHKbfvHXqFiuXJP8PB
hdGNuzn6yQVzC1As5g8=
-----END CERTIFICATE-----
";

const KEY: &str = "\
-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1lxhd46x98croFYDeA5kxugtjhKtf4RJgg6GKgG3YQ
-----END PRIVATE KEY-----
";

/// Accepts connections until it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    ending: AtomicBool,
    accepted: AtomicUsize,
    /// The only other handles of the connections that scripts work on.
    open: Mutex<HashMap<usize, TcpStream>>,
}

impl Server {
    /// Runs `script` for every connection, each on a thread of its own.
    pub fn start(script: impl Fn(&mut Connection) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let script = Arc::new(script);
        let acceptor = std::thread::spawn({
            let shared = shared.clone();
            move || {
                let mut threads = Vec::new();
                for stream in listener.incoming() {
                    if shared.ending.load(Ordering::SeqCst) {
                        break;
                    }
                    let stream = stream.unwrap();
                    let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                    let handle = stream.try_clone().unwrap();
                    shared.open.lock().unwrap().insert(number, handle);
                    let (script, shared) = (script.clone(), shared.clone());
                    threads.push(std::thread::spawn(move || {
                        let mut connection = Connection::new(stream, number);
                        script(&mut connection);
                        shared.open.lock().unwrap().remove(&number);
                    }));
                }
                for thread in threads {
                    let _ = thread.join();
                }
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// How many connections there were.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.ending.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for (_, stream) in self.shared.open.lock().unwrap().drain() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

trait Io: Read + Write + Send {}
impl<T: Read + Write + Send> Io for T {}

/// The server's end of a connection.
pub struct Connection {
    /// 0 for the first that the server accepted.
    pub number: usize,
    stream: TcpStream,
    io: BufReader<Box<dyn Io>>,
}

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Such as `POST /v1 HTTP/1.1`.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Connection {
    fn new(stream: TcpStream, number: usize) -> Self {
        stream.set_nodelay(true).unwrap();
        let io: Box<dyn Io> = Box::new(stream.try_clone().unwrap());
        Self {
            number,
            stream,
            // A small buffer: what is not asked for stays in the socket.
            io: BufReader::with_capacity(1, io),
        }
    }

    /// Answers the TLS handshake that comes next. False when the client breaks it off.
    pub fn tls(&mut self) -> bool {
        use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let mut server = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = self.stream.try_clone().unwrap();
        let done = server.complete_io(&mut stream).is_ok();
        let io: Box<dyn Io> = Box::new(rustls::StreamOwned::new(server, stream));
        self.io = BufReader::with_capacity(1, io);
        done
    }

    /// Reads a request; `None` when the connection ends before.
    pub fn request(&mut self) -> Option<Received> {
        let mut received = self.head()?;
        let length = received.header("content-length");
        received.body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        self.io.read_exact(&mut received.body).ok()?;
        Some(received)
    }

    /// Reads the head of a request and leaves its body unread: a close is then a reset for the client.
    pub fn head(&mut self) -> Option<Received> {
        let mut received = Received::default();
        loop {
            let mut line = String::new();
            if self.io.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            match line.split_once(": ") {
                _ if received.line.is_empty() => received.line = line.to_owned(),
                Some((name, value)) => {
                    let name = name.to_ascii_lowercase();
                    received.headers.push((name, value.to_owned()));
                }
                None => return Some(received),
            }
        }
    }

    /// Reads exactly that many bytes.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        let read = self.io.read_exact(&mut bytes);
        read.map_or_else(|_| Vec::new(), |()| bytes)
    }

    /// False when the client has gone.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let io = self.io.get_mut();
        io.write_all(bytes.as_ref()).and_then(|()| io.flush()).is_ok()
    }

    /// Sends a whole answer that ends with the connection left open.
    pub fn answer(&mut self, status: &str, headers: &str, body: impl AsRef<[u8]>) -> bool {
        let length = body.as_ref().len();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n");
        self.send([head.as_bytes(), body.as_ref()].concat())
    }

    /// Sends the head of a streamed answer, whose body ends with the connection.
    pub fn begin(&mut self) -> bool {
        self.send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
    }

    /// Waits until the client closes the connection.
    pub fn wait_for_close(&mut self) {
        let _ = io::copy(&mut self.io, &mut io::sink());
    }
}
