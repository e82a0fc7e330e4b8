// Stand-ins for what the host does not provide.

/** An error for a part of the reference's interface that this program does not have. */
export function unsupported(what) {
	return new Error(`${what} is not provided by this pi's host for TypeScript extensions (pi docs extensions-typescript)`);
}

/** A value that throws when it is called, constructed or read. */
export function missing(specifier, name) {
	const fail = () => {
		throw unsupported(`${name} of ${specifier}`);
	};
	return new Proxy(function stand() {}, { apply: fail, construct: fail, get: fail });
}
