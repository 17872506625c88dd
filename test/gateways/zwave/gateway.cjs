// A gateway with locks and thermostats, in one process: the real zwave-js driver, zwave-js' own mock controller and mock nodes
// instead of a radio, and the real zwave-js-server on loopback.
//
//   node gateway.cjs '{"locks":[{"id":2,"profile":"plain","slots":12}],"cache":DIR,"memory":FILE,"port":0}'
//
// Once all devices are interviewed it prints {"url":"ws://127.0.0.1:…","control":"http://127.0.0.1:…"}. It ends with
// its standard input.
"use strict";
const path = require("node:path");
const net = require("node:net");
const { createAndStartDriverWithMockPort, createDefaultMockControllerBehaviors, createDefaultMockNodeBehaviors } = require("zwave-js/Testing");
const { MockController, MockNode } = require("@zwave-js/testing");
const { ZwavejsServer } = require("@zwave-js/server");
const { Lock } = require("./locks.cjs");
const { Thermostat, profiles: thermostats } = require("./thermostats.cjs");
const control = require("./control.cjs");

// Both ends of the serial line are in this process, so delays there mean that the machine is busy.
// A request to an unreachable lock would block the radio for all others, so it fails immediately.
const patience = 20_000, unheard = 100;
const { expectHostACK, expectNodeACK } = MockController.prototype;
const locks = new Map();
MockController.prototype.expectHostACK = function (timeout, message) { return expectHostACK.call(this, Math.max(timeout, patience), message); };
MockController.prototype.expectNodeACK = function (node, timeout, message) {
	return expectNodeACK.call(this, node, locks.get(node.id)?.faults.deaf ? Math.min(timeout, unheard) : patience, message);
};

const options = JSON.parse(process.argv[2]);
const homeId = 0x7e570001;

const freePort = () => new Promise((resolve, reject) => {
	const server = net.createServer().once("error", reject);
	server.listen(0, "127.0.0.1", () => { const { port } = server.address(); server.close(() => resolve(port)); });
});
const key = (byte) => Buffer.alloc(16, byte);

async function main() {
	const port = options.port || await freePort();
	const { driver, mockPort, serial, continueStartup } = await createAndStartDriverWithMockPort({
		storage: { cacheDir: options.cache, lockDir: path.join(options.cache, "locks"), throttle: "fast" },
		logConfig: { enabled: !!options.log, level: "debug", forceConsole: true },
		emitValueUpdateAfterSetValue: true, // as in the server's own program
		interview: { queryAllUserCodes: true }, // otherwise the first interview deletes the existing codes
		securityKeys: { S0_Legacy: key(1), S2_Unauthenticated: key(2), S2_Authenticated: key(3), S2_AccessControl: key(4) },
		timeouts: { ack: patience, response: patience, report: 5000, refreshValue: 5000, refreshValueAfterTransition: 1000 },
		attempts: { controller: 1, sendData: 1, nodeInterview: 3 },
		testingHooks: { skipFirmwareIdentification: true },
	});
	const controller = await MockController.create({ homeId, ownNodeId: 1, mockPort, serial });
	controller.defineBehavior(...createDefaultMockControllerBehaviors());
	for (const spec of options.locks) {
		const lock = spec.profile in thermostats ? new Thermostat(controller, spec) : new Lock(controller, spec);
		lock.node = await MockNode.create({ id: spec.id, capabilities: lock.capabilities(), controller });
		controller.addNode(lock.node);
		lock.node.defineBehavior(...createDefaultMockNodeBehaviors());
		lock.node.defineBehavior(...lock.behaviors());
		locks.set(spec.id, lock);
	}
	Lock.remember(options.memory, [...locks.values()]);
	driver.on("error", (e) => console.error("driver:", e.message));
	driver.once("driver ready", async () => {
		const server = new ZwavejsServer(driver, { port, host: "127.0.0.1", enableDNSServiceDiscovery: false,
			logger: { debug() {}, info() {}, warn: (m) => console.error("server:", m), error: (m) => console.error("server:", String(m)) } });
		await server.start(true);
		const url = await control.listen({ driver, controller, locks });
		let printed = false;
		const ready = () => {
			if (printed || ![...driver.controller.nodes.values()].every((n) => n.ready)) return;
			printed = true;
			console.log(JSON.stringify({ url: `ws://127.0.0.1:${port}`, control: url }));
		};
		for (const n of driver.controller.nodes.values()) n.on("ready", ready);
		ready();
	});
	continueStartup();
}

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
main().catch((e) => { console.error(e); process.exit(1); });
