// An in-memory Zigbee coordinator with door locks and thermostats, in place of zigbee-herdsman's radio. Everything above it is
// unmodified: zigbee-herdsman's controller and ZCL codec, zigbee-herdsman-converters, zigbee2mqtt.
"use strict";
const fs = require("node:fs");
const { createRequire } = require("node:module");
const inside = createRequire(require.resolve("zigbee2mqtt/index.js"));
const { Adapter } = inside("zigbee-herdsman/dist/adapter/adapter.js");
const Zcl = inside("zigbee-herdsman/dist/zspec/zcl");
const Zdo = inside("zigbee-herdsman/dist/zspec/zdo");
const { Thermostat, profiles: thermostats } = require("./thermostats.cjs");

const coordinator = "0x00124b0000000000";
const ok = 0;
const duplicate = 3; // ZCL, Set PIN Code Response
const sources = { keypad: 0, rf: 1, manual: 2 };
const programmed = { added: 2, deleted: 3, changed: 4 };
const operated = { lock: 1, unlock: 2, wrong: 5, manualLock: 13 };
const bolt = { notFully: 0, locked: 1, unlocked: 2 };

class Lock {
	constructor(number, { profile, slots }) {
		this.ieee = `0x000d6f00000000${number.toString(16).padStart(2, "0")}`;
		this.network = 0x1000 + number;
		this.name = `lock ${number}`;
		this.endpoint = 1;
		this.clusters = [0, 1, 3, 9, 10, 32, 257];
		this.deviceId = 10;
		this.manufacturer = 0x101d;
		this.profile = profile;
		this.slots = slots;
		this.joined = false;
		this.frames = 0;
		this.heard = 0;
		this.reset();
	}
	reset() {
		this.pins = new Map([[1, "471147"], [2, "800855"]]);
		this.disabled = new Set();
		this.state = bolt.unlocked;
		this.online = true;
		this.faults = {}; // drop: writes without effect, as many; jam; hold: questions about codes are answered later
	}
	// The memory of a lock outlives zigbee2mqtt.
	kept() { return { pins: [...this.pins], disabled: [...this.disabled], state: this.state, joined: this.joined }; }
	restore({ pins, disabled, state, joined }) { Object.assign(this, { pins: new Map(pins), disabled: new Set(disabled), state, joined }); }
	status(slot) { return !this.pins.has(slot) ? 0 : this.disabled.has(slot) ? 3 : 1; }
	async answers() { while (this.faults.hold) await new Promise((resolve) => setTimeout(resolve, 5)); }
	attributes() {
		return {
			genBasic: { zclVersion: 3, appVersion: 1, stackVersion: 2, hwVersion: 1, manufacturerName: "Yale", modelId: "YRD256 TSDB", dateCode: "20240101", powerSource: 3, swBuildId: "1.0" },
			genPowerCfg: { batteryPercentageRemaining: 170, batteryVoltage: 58, batteryAlarmState: 0 },
			closuresDoorLock: { lockState: this.state, autoRelockTime: 0, soundVolume: 1, numOfPinUsersSupported: this.slots, maxPinLen: 8, minPinLen: 4 },
		};
	}
	dropped() {
		if (!this.faults.drop) return false;
		this.faults.drop--;
		return true;
	}
	dump() { return { codes: Object.fromEntries(this.pins), disabled: [...this.disabled], locked: this.state === bolt.locked, frames: this.frames }; }
}

class Radio extends Adapter {
	constructor(...args) {
		super(...args);
		this.hasZdoMessageOverhead = false;
		this.sequence = 0;
		Radio.current = this;
	}
	async start() {
		setTimeout(() => Radio.locks.filter((l) => !l.joined).forEach((l) => this.join(l)), 200);
		// A sign of life of locks without recent reports: real locks report their battery rarely.
		setInterval(() => Radio.locks.forEach((l) => l.joined && Date.now() - l.heard > 900 && this.report(l, "genPowerCfg", 33, 32, 170)), 1000);
		return "resumed";
	}
	async stop() {}
	async getCoordinatorIEEE() { return coordinator; }
	async getCoordinatorVersion() { return { type: "lab", meta: { revision: 1 } }; }
	async reset() {}
	async supportsBackup() { return false; }
	async backup() { throw new Error("no backup"); }
	async getNetworkParameters() { const o = this.networkOptions; return { panID: o.panID, extendedPanID: "0xdddddddddddddddd", channel: o.channelList[0], nwkUpdateID: 0 }; }
	async addInstallCode() {}
	async permitJoin() {}
	waitFor() { return { promise: new Promise(() => {}), cancel() {} }; }
	async setChannelInterPAN() {}
	async sendZclFrameInterPANToIeeeAddr() {}
	async sendZclFrameInterPANBroadcast() {}
	async restoreChannelInterPAN() {}
	async sendZclFrameToGroup() {}
	async sendZclFrameToAll() {}

	join(lock) {
		lock.joined = true;
		Radio.save();
		this.emit("deviceJoined", { networkAddress: lock.network, ieeeAddr: lock.ieee });
	}
	leave(lock) {
		lock.joined = false;
		Radio.save();
		this.emit("deviceLeave", { networkAddress: lock.network, ieeeAddr: lock.ieee });
	}
	save() { Radio.save(); }
	find(ieee, network) { return Radio.locks.find((l) => l.ieee === ieee || l.network === network); }

	async sendZdo(ieee, network, cluster) {
		const C = Zdo.ClusterId;
		const own = network === 0 || ieee === coordinator;
		const lock = own ? undefined : this.find(ieee, network);
		if (!own && !lock?.online) throw new Error("MAC_NO_ACK (233)");
		switch (cluster) {
			case C.ACTIVE_ENDPOINTS_REQUEST: return [ok, { nwkAddress: network, endpointList: [own ? 1 : lock.endpoint] }];
			case C.SIMPLE_DESCRIPTOR_REQUEST: return [ok, { nwkAddress: network, length: 26, endpoint: own ? 1 : lock.endpoint, profileId: 260, deviceId: own ? 5 : lock.deviceId, deviceVersion: 0, inClusterList: own ? [] : lock.clusters, outClusterList: own ? [] : [10, 25] }];
			case C.NODE_DESCRIPTOR_REQUEST: return [ok, { nwkAddress: network, logicalType: own ? 0 : 2, manufacturerCode: own ? 0 : lock.manufacturer, fragmentationSupported: false, apsFlags: 0, frequencyBand: 8, capabilities: { alternatePANCoordinator: 0, deviceType: 0, powerSource: 0, rxOnWhenIdle: 0, reserved1: 0, reserved2: 0, securityCapability: 0, allocateAddress: 1 }, maxBufSize: 82, maxIncTxSize: 82, maxOutTxSize: 82, deprecated1: 0, tlvs: [], serverMask: { primaryTrustCenter: 0, backupTrustCenter: 0, deprecated1: 0, deprecated2: 0, deprecated3: 0, deprecated4: 0, networkManager: 0, reserved1: 0, reserved2: 0, stackComplianceRevision: 22 } }];
			case C.LEAVE_REQUEST: setTimeout(() => this.leave(lock), 20); return [ok, undefined];
			default: return [ok, {}];
		}
	}

	// deliver sends a frame of the lock to zigbee2mqtt.
	deliver(lock, frame) {
		const payload = { clusterID: frame.cluster.ID, header: frame.header, address: lock.network, data: frame.toBuffer(), endpoint: lock.endpoint, linkquality: 120, groupID: 0, wasBroadcast: false, destinationEndpoint: 1 };
		lock.heard = Date.now();
		if (lock.online) setImmediate(() => this.emit("zclPayload", payload));
		return payload;
	}
	frame(lock, name, payload, sequence, type = Zcl.FrameType.SPECIFIC, cluster = "closuresDoorLock") {
		this.sequence = (this.sequence % 255) + 1;
		return this.deliver(lock, Zcl.Frame.create(type, Zcl.Direction.SERVER_TO_CLIENT, true, undefined, sequence ?? this.sequence, name, cluster, payload, {}));
	}
	report(lock, cluster, attrId, dataType, attrData) { this.frame(lock, "report", [{ attrId, dataType, attrData }], undefined, Zcl.FrameType.GLOBAL, cluster); }
	tellProgrammed(lock, what, slot, source) {
		this.frame(lock, "programmingEventNotification", { programeventsrc: sources[source], programeventcode: programmed[what], userid: slot, pin: Buffer.from(lock.pins.get(slot) ?? ""), usertype: 0, userstatus: lock.pins.has(slot) ? 1 : 0, zigbeelocaltime: 0, data: "" });
	}
	tellOperated(lock, what, slot, source) {
		this.frame(lock, "operationEventNotification", { opereventsrc: sources[source], opereventcode: operated[what], userid: slot, pin: Buffer.alloc(0), zigbeelocaltime: 0, data: "" });
	}
	// move moves the bolt, which takes a moment, and reports it.
	move(lock, locked, what, slot, source) {
		setTimeout(() => {
			lock.state = lock.faults.jam ? bolt.notFully : locked ? bolt.locked : bolt.unlocked;
			Radio.save();
			this.report(lock, "closuresDoorLock", 0, 48, lock.state);
			if (!lock.faults.jam) this.tellOperated(lock, what, slot, source);
		}, 100);
	}
	// program changes a slot like the keypad or the radio; no PIN deletes the code.
	program(lock, slot, pin, source) {
		const what = pin === undefined ? "deleted" : lock.pins.has(slot) ? "changed" : "added";
		if (pin === undefined) lock.pins.delete(slot);
		else lock.pins.set(slot, pin);
		lock.disabled.delete(slot);
		Radio.save();
		setTimeout(() => this.tellProgrammed(lock, what, slot, source), 50);
	}

	async sendZclFrameToEndpoint(ieee, network, endpoint, frame) {
		const lock = this.find(ieee, network);
		if (!lock?.online) throw new Error("Data request failed with error: 'MAC_NO_ACK' (0xe9)");
		const sequence = frame.header.transactionSequenceNumber;
		const cluster = frame.cluster.name;
		const answer = (name, payload, type) => this.frame(lock, name, payload, sequence, type, cluster);
		const G = Zcl.FrameType.GLOBAL;
		if (frame.header.isGlobal) {
			switch (frame.command.name) {
				case "read": {
					if (cluster === "closuresDoorLock" || cluster.startsWith("hvac")) lock.frames++;
					const values = lock.attributes()[cluster] ?? {};
					return answer("readRsp", frame.payload.map(({ attrId }) => {
						const a = Object.values(frame.cluster.attributes).find((x) => x.ID === attrId);
						return a && values[a.name] !== undefined ? { attrId, status: ok, dataType: a.type, attrData: values[a.name] } : { attrId, status: Zcl.Status.UNSUPPORTED_ATTRIBUTE };
					}), G);
				}
				case "write": return answer("writeRsp", lock.write?.(this, frame) ?? [{ status: ok }], G);
				case "configReport": return answer("configReportRsp", [{ status: ok }], G);
			}
			return undefined;
		}
		if (cluster !== "closuresDoorLock") return answer("defaultRsp", { cmdId: frame.command.ID, statusCode: ok }, G);
		lock.frames++;
		const { userid: slot, pincodevalue } = frame.payload;
		switch (frame.command.name) {
			case "lockDoor": this.move(lock, true, "lock", 0xffff, "rf"); return answer("lockDoorRsp", { status: ok });
			case "unlockDoor": this.move(lock, false, "unlock", 0xffff, "rf"); return answer("unlockDoorRsp", { status: ok });
			case "setPinCode": {
				const pin = pincodevalue.toString();
				if ([...lock.pins].some(([other, has]) => other !== slot && has === pin)) return answer("setPinCodeRsp", { status: duplicate });
				if (!lock.dropped()) this.program(lock, slot, pin, "rf");
				return answer("setPinCodeRsp", { status: ok });
			}
			case "clearPinCode":
				if (!lock.dropped() && lock.pins.has(slot)) this.program(lock, slot, undefined, "rf");
				return answer("clearPinCodeRsp", { status: ok });
			case "getPinCode": {
				await lock.answers();
				const pin = lock.pins.get(slot);
				return answer("getPinCodeRsp", { userid: slot, userstatus: lock.status(slot), usertype: 0, pincodevalue: pin && lock.profile !== "masked" ? Buffer.from(pin) : Buffer.alloc(0) });
			}
			case "getUserStatus":
				await lock.answers();
				return answer("getUserStatusRsp", { userid: slot, userstatus: lock.status(slot) });
			default: return answer("defaultRsp", { cmdId: frame.command.ID, statusCode: Zcl.Status.UNSUP_CLUSTER_COMMAND }, G);
		}
	}
}

// install replaces the radio; file stores the locks' memory.
Radio.install = (locks, file) => {
	Radio.locks = locks.map((l, i) => l.profile in thermostats ? new Thermostat(i + 1, l) : new Lock(i + 1, l));
	if (fs.existsSync(file)) JSON.parse(fs.readFileSync(file, "utf8")).forEach((kept, i) => Radio.locks[i].restore(kept));
	Radio.save = () => fs.writeFileSync(file, JSON.stringify(Radio.locks.map((l) => l.kept())));
	Adapter.create = async (...args) => new Radio(...args);
};

module.exports = { Radio };
