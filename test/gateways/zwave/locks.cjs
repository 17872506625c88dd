// The locks of the lab. Framing, command classes, interviews and acknowledgements are zwave-js' mocks; added here
// is what real locks do and its mocks do not: a battery, the refusal of duplicate PINs, stars in place of PINs,
// reports of manual operation, cards of users, faults, and a memory that outlives the process.
"use strict";
const fs = require("node:fs");
const { UserIDStatus, UserCredentialType, UserCredentialModifierType, UserCredentialUserReportType, UserCredentialCredentialReportType } = require("@zwave-js/cc");
const { UserCodeCCSet, UserCodeCCGet, UserCodeCCReport, UserCodeCCExtendedUserCodeSet } = require("@zwave-js/cc/UserCodeCC");
const { NotificationCCReport } = require("@zwave-js/cc/NotificationCC");
const { ManufacturerSpecificCCDeviceSpecificGet, ManufacturerSpecificCCDeviceSpecificReport } = require("@zwave-js/cc/ManufacturerSpecificCC");
const { BatteryCCGet, BatteryCCReport } = require("@zwave-js/cc/BatteryCC");
const { DoorLockCCOperationReport, DoorLockCCOperationSet } = require("@zwave-js/cc/DoorLockCC");
const { UserCredentialCCCredentialGet, UserCredentialCCCredentialReport, UserCredentialCCCredentialSet, UserCredentialCCUserGet, UserCredentialCCUserReport,
	UserCredentialCCUserSet } = require("@zwave-js/cc/UserCredentialCC");
const { CommandClasses: CC } = require("@zwave-js/core");
const { createMockZWaveRequestFrame, MockZWaveFrameType } = require("@zwave-js/testing");

const MODE = "DoorLock_currentMode";
const codeKey = (slot) => `UserCode_userCode_${slot}`;
const statusKey = (slot) => `UserCode_userIdStatus_${slot}`;
const userKey = (user) => `UserCredential_user_${user}`;
const cardKey = (slot) => `UserCredential_cred_${UserCredentialType.RFIDCode}_${slot}`;
const newUser = { userType: 0, active: true, credentialRule: 1, expiringTimeoutMinutes: 0, nameEncoding: 0, userName: "", modifierNodeId: 0 };
const digits = (v) => v === undefined || typeof v === "string" ? v : Buffer.from(v).toString("ascii");
const accessControl = 6;
const events = { handLock: 1, handUnlock: 2, remoteLock: 3, remoteUnlock: 4, keypadUnlock: 6, jammed: 11, deleted: 13, added: 14, duplicate: 15, keypadOff: 16 };

// profiles are the kinds of locks. Fingerprints are those of real ones, so that zwave-js' device files apply.
const profiles = {
	plain: { product: [0x0129, 0x0006, 0x0000], userCode: { version: 1 }, serial: true },
	one_length: { product: [0x003b, 0x0001, 0x0469], userCode: { version: 1 },
		more: () => [{ ccId: CC.Configuration, version: 1, isSupported: true, parameters: [{ "#": 16, valueSize: 1, defaultValue: 6 }] }] },
	supervised: { product: [0x0129, 0x8004, 0x0600], userCode: { version: 2 }, silent: true,
		more: () => [{ ccId: CC["Schedule Entry Lock"], version: 3, isSupported: true, numWeekDaySlots: 1, numYearDaySlots: 1, numDailyRepeatingSlots: 1 },
			{ ccId: CC.Supervision, version: 1, isSupported: true }] },
	masked: { product: [0x0090, 0x0003, 0x0642], userCode: { version: 1 }, mask: true },
	users: { product: [0x0129, 0x8104, 0x1006],
		more: (slots) => [{ ccId: CC["User Credential"], version: 1, isSupported: true, numberOfSupportedUsers: slots,
			supportedCredentialTypes: new Map([UserCredentialType.PINCode, UserCredentialType.RFIDCode].map((type) => [type,
				{ numberOfCredentialSlots: slots, minCredentialLength: 4, maxCredentialLength: 10, maxCredentialHashLength: 0, supportsCredentialLearn: false }])) }] },
};

class Lock {
	constructor(controller, spec) {
		Object.assign(this, { controller, id: spec.id, profile: spec.profile, slots: spec.slots, kind: profiles[spec.profile], frames: 0, made: spec.made ?? 1 });
		this.heal();
	}

	// heal ends all faults.
	heal() { this.faults = { drop: 0, die: "", hang: "", lose: false, deaf: false, jam: false, mute: 0, after: 0 }; }

	capabilities() {
		const [manufacturerId, productType, productId] = this.kind.product;
		const known = Object.values(events).concat(9);
		return { manufacturerId, productType, productId, isListening: false, isFrequentListening: "1000ms", isRouting: true, supportsBeaming: true,
			genericDeviceClass: 0x40, specificDeviceClass: 0x03, firmwareVersion: "8.0", // Entry Control, Secure Keypad Door Lock
			commandClasses: [
				{ ccId: CC.Version, version: 2, isSupported: true }, { ccId: CC["Z-Wave Plus Info"], version: 2, isSupported: true },
				{ ccId: CC["Manufacturer Specific"], version: this.kind.serial ? 2 : 1, isSupported: true },
				{ ccId: CC["Door Lock"], version: 4, isSupported: true, travelTime: 100 },
				{ ccId: CC.Battery, version: 1, isSupported: true },
				{ ccId: CC.Notification, version: 8, isSupported: true, supportsV1Alarm: false, notificationTypesAndEvents: { [accessControl]: known } },
				...(this.kind.userCode ? [{ ccId: CC["User Code"], isSupported: true, numUsers: this.slots, supportsUserCodeChecksum: true, ...this.kind.userCode }] : []),
				...(this.kind.more?.(this.slots) ?? []),
			] };
	}

	send(cc) { return this.node.sendToController(createMockZWaveRequestFrame(cc, { ackRequested: false })); }

	notify(event, user) {
		return this.send(new NotificationCCReport({ nodeId: this.controller.ownNodeId, notificationType: accessControl, notificationEvent: event,
			eventParameters: user === undefined ? undefined : Uint8Array.from([user]) }));
	}

	battery() { return this.send(new BatteryCCReport({ nodeId: this.controller.ownNodeId, isLow: false, level: 87 })); }

	// holder returns the slot that has a PIN.
	holder(pin, except) {
		for (let slot = 1; slot <= this.slots; slot++) {
			if (slot !== except && this.code(slot) === pin) return slot;
		}
	}

	code(slot) {
		if (!this.kind.userCode) return digits(this.node.state.get(`UserCredential_cred_1_${slot}`)?.credentialData);
		return this.node.state.get(statusKey(slot)) ? digits(this.node.state.get(codeKey(slot))) : undefined;
	}

	// keypad programs (or, without a PIN, deletes) a code at the lock.
	async keypad(slot, pin, silent) {
		const had = this.code(slot) !== undefined, { state } = this.node;
		if (this.kind.userCode) {
			state.set(codeKey(slot), pin);
			state.set(statusKey(slot), pin === undefined ? UserIDStatus.Available : UserIDStatus.Enabled);
		} else if (pin === undefined) {
			state.delete(`UserCredential_cred_1_${slot}`);
			state.delete(userKey(slot));
		} else {
			state.set(userKey(slot), { ...newUser, modifierType: 2 });
			state.set(`UserCredential_cred_1_${slot}`, { userId: slot, credentialData: Buffer.from(pin, "ascii"), modifierType: 2, modifierNodeId: 0 });
		}
		if (!silent && (had || pin !== undefined)) await this.notify(pin === undefined ? events.deleted : events.added, slot);
	}

	// card assigns a card to a user, in the slot of the user's number. It creates a missing user with this name.
	async card(user, name, silent) {
		const { state } = this.node, nodeId = this.controller.ownNodeId, made = !state.has(userKey(user));
		const by = { modifierType: UserCredentialModifierType.Locally, modifierNodeId: 0 }, credentialData = Buffer.from(`card${user}`, "ascii");
		if (made) state.set(userKey(user), { ...newUser, ...by, userName: name });
		state.set(cardKey(user), { ...by, userId: user, credentialData });
		if (silent) return;
		if (made) await this.send(new UserCredentialCCUserReport({ nodeId, reportType: UserCredentialUserReportType.UserAdded, userId: user, ...state.get(userKey(user)) }));
		await this.send(new UserCredentialCCCredentialReport({ nodeId, reportType: UserCredentialCredentialReportType.CredentialAdded, ...by, userId: user,
			credentialType: UserCredentialType.RFIDCode, credentialSlot: user, credentialReadBack: true, credentialData }));
	}

	// disable disables a code without deleting it.
	async disable(slot) {
		const { state } = this.node;
		if (this.kind.userCode) {
			state.set(statusKey(slot), UserIDStatus.Disabled);
			await this.send(new UserCodeCCReport({ nodeId: this.controller.ownNodeId, userId: slot, userIdStatus: UserIDStatus.Disabled,
				userCode: this.kind.mask ? "****" : this.code(slot) }));
		} else {
			state.set(userKey(slot), { ...state.get(userKey(slot)), active: false });
			await this.notify(events.added, slot);
		}
	}

	disabled(slot) {
		return this.kind.userCode ? this.node.state.get(statusKey(slot)) === UserIDStatus.Disabled
			: this.node.state.get(userKey(slot))?.active === false;
	}

	// move moves the bolt and reports it.
	async move(locked, event, user) {
		this.node.state.set(MODE, locked ? 255 : 0, true);
		await this.notify(event, user);
		await this.position();
	}

	// position reports the position of the bolt.
	position() {
		const mode = this.node.state.get(MODE), handles = [true, true, true, true];
		return this.send(new DoorLockCCOperationReport({ nodeId: this.controller.ownNodeId, currentMode: mode, targetMode: mode,
			outsideHandlesCanOpenDoor: handles, insideHandlesCanOpenDoor: handles }));
	}

	// report reports the factory state, in which the bolt locks the door.
	report() {
		this.node.state.set(MODE, 255, true);
		return this.position();
	}

	// enter types a PIN in at the door.
	enter(pin) {
		const slot = this.holder(pin);
		return slot && !this.disabled(slot) ? this.move(false, events.keypadUnlock, slot) : this.notify(events.keypadOff);
	}

	behaviors() {
		const lock = this;
		const keep = (slot, pin) => {
			lock.node.state.set(codeKey(slot), pin);
			lock.node.state.set(statusKey(slot), pin === undefined ? UserIDStatus.Available : UserIDStatus.Enabled);
		};
		// refuse handles faults and duplicates; zwave-js' mock handles the rest.
		const refuse = (slot, pin) => {
			if (lock.faults.drop > 0) { lock.faults.drop--; return { action: "stop" }; } // acknowledged on the radio, and ignored
			const { die, hang } = lock.faults;
			if (die === "before") process.kill(process.pid, "SIGKILL");
			const other = pin === undefined ? undefined : lock.holder(pin, slot);
			if (other !== undefined) { void lock.notify(events.duplicate, other); return { action: "fail" }; }
			if (die === "after") {
				keep(slot, pin);
				process.kill(process.pid, "SIGKILL");
			}
			if (lock.faults.lose) lock.losing = slot;
			if (hang) {
				lock.faults.hang = "";
				if (hang === "after") keep(slot, pin);
				process.kill(process.pid, "SIGSTOP");
				return { action: "stop" };
			}
		};
		// lose makes the lock lose a code after it has shown it once.
		const lose = (slot) => {
			if (lock.losing !== slot) return;
			lock.losing = undefined;
			lock.faults.lose = false;
			setTimeout(() => void lock.keypad(slot), 50);
		};
		const userCode = { handleCC(controller, self, got) {
			if (got instanceof UserCodeCCSet) return refuse(got.userId, got.userIdStatus === UserIDStatus.Available ? undefined : digits(got.userCode));
			if (got instanceof UserCodeCCExtendedUserCodeSet) {
				const [c] = got.userCodes;
				return refuse(c.userId, c.userIdStatus === UserIDStatus.Available ? undefined : digits(c.userCode));
			}
			if (got instanceof UserCodeCCGet) lose(got.userId);
			if (got instanceof UserCodeCCGet && lock.kind.mask && lock.code(got.userId)) {
				return { action: "sendCC", cc: new UserCodeCCReport({ nodeId: controller.ownNodeId, userId: got.userId,
					userIdStatus: lock.node.state.get(statusKey(got.userId)), userCode: "*".repeat(lock.code(got.userId).length) }) };
			}
		} };
		const credential = { handleCC(controller, self, got) {
			if (got instanceof UserCredentialCCUserGet || got instanceof UserCredentialCCCredentialGet) {
				if (lock.faults.after > 0) lock.faults.after--;
				else if (lock.faults.mute > 0) { lock.faults.mute--; return { action: "stop" }; } // acknowledged on the radio, and not answered
			}
			if (got instanceof UserCredentialCCCredentialSet && lock.faults.lose) lock.losing = got.credentialSlot;
			if (got instanceof UserCredentialCCCredentialGet) lose(got.credentialSlot);
			if ((got instanceof UserCredentialCCCredentialSet || got instanceof UserCredentialCCUserSet) && lock.faults.drop > 0) { lock.faults.drop--; return { action: "stop" }; }
		} };
		const bolt = { handleCC(controller, self, got) {
			if (!(got instanceof DoorLockCCOperationSet)) return;
			if (lock.faults.jam) { void lock.notify(events.jammed); return { action: "fail" }; }
		} };
		const battery = { handleCC(controller, self, got) {
			if (got instanceof BatteryCCGet) return { action: "sendCC", cc: new BatteryCCReport({ nodeId: controller.ownNodeId, isLow: false, level: 87 }) };
		} };
		const serial = { handleCC(controller, self, got) {
			if (got instanceof ManufacturerSpecificCCDeviceSpecificGet) return { action: "sendCC",
				cc: new ManufacturerSpecificCCDeviceSpecificReport({ nodeId: controller.ownNodeId, type: got.deviceIdType, deviceId: `${lock.id}-${lock.made}` }) };
		} };
		return [battery, serial, bolt, userCode, credential];
	}

	// wire adds deafness, counts requests, stores the memory, and reports bolts moved remotely.
	wire(save) {
		this.save = save;
		const { node } = this, receive = node.onControllerFrame.bind(node);
		node.onControllerFrame = async (frame) => {
			if (this.faults.deaf) return;
			if (frame.type === MockZWaveFrameType.Request) this.frames++;
			return receive(frame);
		};
		const set = node.state.set.bind(node.state), remove = node.state.delete.bind(node.state);
		node.state.set = (key, value, byHand) => {
			const moved = key === MODE && node.state.get(key) !== value;
			set(key, value);
			save();
			if (moved && !byHand && !this.kind.silent) void this.notify(value === 255 ? events.remoteLock : events.remoteUnlock);
			return node.state;
		};
		node.state.delete = (key) => { const had = remove(key); save(); return had; };
	}

	// reset restores the factory state.
	reset() {
		this.heal();
		for (const key of [...this.node.state.keys()]) this.node.state.delete(key);
	}

	// another is a replacement lock, which zwave-js' mock controller includes.
	another() {
		this.heal();
		this.made++;
		const setup = (node) => {
			this.node = node;
			node.defineBehavior(...this.behaviors());
			this.wire(this.save);
		};
		return { id: this.id, capabilities: this.capabilities(), setup };
	}

	dump() {
		const codes = {};
		for (let slot = 1; slot <= this.slots; slot++) {
			const pin = this.code(slot);
			if (pin === undefined) continue;
			codes[slot] = { pin, disabled: this.disabled(slot), name: this.node.state.get(userKey(slot))?.userName ?? "" };
			const schedule = this.node.state.get(`ScheduleEntryLock_schedule_${slot}_1_1`);
			if (schedule?.startYear !== undefined) codes[slot].schedule = schedule;
		}
		const users = {}, cards = {};
		for (let number = 1; number <= this.slots; number++) {
			const user = this.node.state.get(userKey(number)), card = this.node.state.get(cardKey(number));
			if (user) users[number] = user.userName;
			if (card) cards[number] = card.userId;
		}
		return { id: this.id, locked: this.node.state.get(MODE) === 255, frames: this.frames, codes, users, cards };
	}

	// remember stores the memory of locks in a file at each change: a lock keeps what it has acknowledged.
	static remember(file, locks) {
		const pack = (k, v) => v?.type === "Buffer" ? { bytes: v.data } : v instanceof Uint8Array ? { bytes: [...v] } : v;
		const unpack = (k, v) => v?.bytes ? Buffer.from(v.bytes) : v;
		const lasting = ([key]) => !key.endsWith("_transition");
		const save = () => {
			const all = Object.fromEntries(locks.map((l) => [l.id, [...l.node.state].filter(lasting)]));
			fs.writeFileSync(file + ".new", JSON.stringify(all, pack));
			fs.renameSync(file + ".new", file);
		};
		if (fs.existsSync(file)) {
			const all = JSON.parse(fs.readFileSync(file, "utf8"), unpack);
			for (const l of locks) for (const [key, value] of all[l.id] ?? []) l.node.state.set(key, value);
		}
		for (const l of locks) l.wire(save);
	}
}

module.exports = { Lock, events };
