// What pi said at the start: folders, versions, mode. Filled in before the first extension is loaded.

export const environment = {
	agentDir: undefined,
	cwd: process.cwd(),
	hasUI: false,
	isProjectTrusted: false,
	mode: "print",
	referenceVersion: undefined,
	flags: {},
};
