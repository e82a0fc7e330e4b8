//! TLS and its trusted certificates: the built-in web roots, the system's bundle, and the files in
//! `SSL_CERT_FILE`, `SSL_CERT_DIR` and `NODE_EXTRA_CA_CERTS`, all combined: a company's own root does not
//! replace the web roots.
//!
//! Nothing is loaded before the first https connection. ureq's own connector is not used, since it accepts
//! either the built-in roots or given certificates.

use crate::base::env::Env;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Paths of the system's bundle. The first readable file is used.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/tls/cacert.pem",
];
const FILE_VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
const FOLDERS_VARIABLE: &str = "SSL_CERT_DIR";

/// The trusted certificates, loaded at first use.
pub(super) struct Trust {
    env: Env,
    loaded: OnceLock<Loaded>,
}

struct Loaded {
    config: Arc<ClientConfig>,
    count: usize,
    bundle: Option<&'static Path>,
    /// Errors of reading the files that variables name.
    problems: Vec<String>,
}

impl Trust {
    pub(super) fn new(env: Env) -> Self {
        Self { env, loaded: OnceLock::new() }
    }

    fn config(&self) -> Result<Arc<ClientConfig>, Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.config.clone());
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded).config.clone())
    }

    fn load(&self) -> Result<Loaded, Error> {
        let mut found = Certificates::default();
        let mut bundles = SYSTEM_BUNDLES.iter().map(Path::new);
        let bundle = bundles.find(|path| found.add_file(path).is_ok());
        let mut problems = Vec::new();
        for variable in FILE_VARIABLES {
            if let Some(path) = self.env.get(variable)
                && let Err(problem) = found.add_file(Path::new(&path))
            {
                problems.push(format!("{variable}={path}: {problem}"));
            }
        }
        let folders = self.env.get(FOLDERS_VARIABLE);
        for folder in folders.iter().flat_map(|folders| folders.split(':')) {
            // The system's own folder holds the parts of its bundle, in hundreds of small files.
            if bundle.and_then(Path::parent) == Some(Path::new(folder)) {
                continue;
            }
            match std::fs::read_dir(folder) {
                Ok(entries) => entries.flatten().for_each(|entry| {
                    let _ = found.add_file(&entry.path()); // not all files there are certificates
                }),
                Err(error) => problems.push(format!("{FOLDERS_VARIABLE}={folder}: {error}")),
            }
        }
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        roots.add_parsable_certificates(found.certificates);
        let count = roots.len();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Loaded { config: Arc::new(config), count, bundle, problems })
    }

    /// Loads the certificates, and says which there are.
    pub(super) fn survey(&self) -> Trusted {
        match self.load() {
            Ok(Loaded { count, bundle, problems, .. }) => Trusted { count, bundle, problems },
            Err(error) => Trusted { count: 0, bundle: None, problems: vec![error.to_string()] },
        }
    }

    /// Errors of loading certificates.
    pub(super) fn problems(&self) -> &[String] {
        self.loaded.get().map_or(&[], |loaded| &loaded.problems)
    }
}

/// The certificates that servers are trusted by.
pub(crate) struct Trusted {
    pub count: usize,
    /// The system's bundle, if there is one.
    pub bundle: Option<&'static Path>,
    /// What is wrong with files that variables name.
    pub problems: Vec<String>,
}

/// Certificates from files, each once: variables often name the system's bundle again.
#[derive(Default)]
struct Certificates {
    files: HashSet<PathBuf>,
    certificates: HashSet<CertificateDer<'static>>,
}

impl Certificates {
    /// Adds the certificates of a PEM file.
    fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let path = path.canonicalize().map_err(|error| error.to_string())?;
        if self.files.contains(&path) {
            return Ok(());
        }
        let pem = std::fs::read(&path).map_err(|error| error.to_string())?;
        let mut certificates = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).peekable();
        if certificates.peek().is_none() {
            return Err("no certificate in PEM form".to_owned());
        }
        self.certificates.extend(certificates);
        self.files.insert(path);
        Ok(())
    }
}

/// Wraps a connection in TLS if the URL is https.
pub(super) struct TlsConnector(Arc<Trust>);

impl TlsConnector {
    pub(super) fn new(trust: Arc<Trust>) -> Self {
        Self(trust)
    }
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::BadUri(format!("{host} is not a host name")))?;
        let mut connection = ClientConnection::new(self.0.config()?, name)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let config = details.config;
        Ok(Some(Either::B(TlsTransport {
            buffers: LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
            stream: StreamOwned::new(connection, socket),
        })))
    }
}

impl fmt::Debug for TlsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsConnector")
    }
}

pub(super) struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.sock.set_timeout(timeout);
        let output = self.buffers.output();
        let output = output.get(..amount).ok_or(io::ErrorKind::InvalidInput);
        self.stream.write_all(output.map_err(io::Error::from)?)?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.sock.set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsTransport({:?})", self.stream.sock.inner())
    }
}
