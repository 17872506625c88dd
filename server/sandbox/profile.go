package sandbox

import (
	"maps"
	"slices"
	"time"
)

// profile describes the behavior of one vendor's devices. Its values come from the vendors' public help
// pages. "assumed" marks values without a public source. All latencies are assumed, and shortened for
// demonstrations. The fields about codes and bolts describe locks.
type profile struct {
	Provider     string // device_provider_name of the API
	DeviceType   string // device_type of the API
	Manufacturer string
	Model        string
	LockName     string // name of the first device

	// Thermostat is set for thermostats.
	Thermostat *thermostatProfile
	// Noise is set for noise sensors.
	Noise *noiseProfile

	CodeLengths []int
	PerLock     bool // each lock accepts only one of CodeLengths
	MaxCodes    int
	Constraints []constraintKind
	NameMin     int
	NameMax     int // 0 if unbounded
	// NameAlphanumeric means that names consist of ASCII letters, digits, and spaces.
	NameAlphanumeric bool

	PINVisible     bool
	ProviderPIN    bool // the vendor chooses the PIN
	NativeSchedule bool
	Convert        string // adopt or never
	MinGap         time.Duration

	AutoLock     bool // the lock can lock itself after a delay; always assumed
	Offline      bool // the vendor issues offline codes
	Hub          bool // the lock connects through a hub
	Subscription bool // the vendor requires a subscription for access codes
	// AccessoryKeypad means that the lock has a separate keypad, and none of its own; assumed for ttlock.
	AccessoryKeypad bool

	Busy           busy
	PatchDropsTime bool // a change without a time frame clears it

	Latency latency
	ListLag time.Duration // how long the list lags behind the lock

	Codes []string // names of the codes on a new lock

	// SecondFactor means that logins need SecondFactor after the password.
	SecondFactor bool
	// MorePeople are email addresses of persons with an account at this vendor only.
	MorePeople []string
	// AnyPerson means that any address of example.com has an account at this vendor.
	AnyPerson bool
}

// constraintKind is a constraint_type of the API.
type constraintKind string

const (
	noZeros              constraintKind = "no_zeros"
	cannotStartWith12    constraintKind = "cannot_start_with_12"
	threeUniqueDigits    constraintKind = "at_least_three_unique_digits"
	noSequence           constraintKind = "no_ascending_or_descending_sequence"
	cannotContain0789    constraintKind = "cannot_contain_0789"
	cannotSpecifyPINCode constraintKind = "cannot_specify_pin_code"
	startDateInFuture    constraintKind = "start_date_in_future"
	nameUnique           constraintKind = "name_must_be_unique"
	nameLength           constraintKind = "name_length" // see NameMin and NameMax
)

// busy says which other writes a running write blocks.
type busy int

const (
	busyNever   busy = iota
	busyLock         // a second write to the same lock
	busyGateway      // a write to any lock of the account behind the same gateway
)

// latency is the uniformly distributed time between acknowledgment and effect.
type latency struct{ Min, Max time.Duration }

func lengths(from, to int) []int {
	var l []int
	for n := from; n <= to; n++ {
		l = append(l, n)
	}
	return l
}

func ms(from, to int) latency {
	return latency{time.Duration(from) * time.Millisecond, time.Duration(to) * time.Millisecond}
}

var profiles = map[string]profile{
	"august": {
		DeviceType:      "august_lock",
		SecondFactor:    true,
		Manufacturer:    "August",
		Model:           "Wi-Fi Smart Lock",
		LockName:        "Front Door",
		CodeLengths:     lengths(4, 6),
		MaxCodes:        250, // both assumed
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         "adopt",
		AutoLock:        true,
		AccessoryKeypad: true,
		Hub:             true,
		Latency:         ms(100, 400),
		Codes:           []string{"Cleaner", "Owner", "Maintenance"},
	},
	"yale": {
		DeviceType:     "yale_lock",
		Manufacturer:   "Yale",
		Model:          "Assure Lock 2",
		LockName:       "Back Door",
		CodeLengths:    lengths(4, 8),
		MaxCodes:       250, // both assumed
		PINVisible:     true,
		NativeSchedule: true,
		Convert:        "adopt",
		AutoLock:       true,
		Latency:        ms(100, 400),
		Codes:          []string{"Cleaner", "Property Manager"},
	},
	"schlage": {
		DeviceType:       "schlage_lock",
		Manufacturer:     "Schlage",
		Model:            "Encode Plus",
		LockName:         "Side Door",
		CodeLengths:      lengths(4, 8),
		PerLock:          true,
		MaxCodes:         100, // MaxCodes assumed
		NameMin:          1,
		NameMax:          12,
		NameAlphanumeric: true,
		PINVisible:       true,
		NativeSchedule:   true,
		Convert:          "adopt",
		AutoLock:         true,
		Latency:          ms(50, 150),
		ListLag:          300 * time.Millisecond,
		Codes:            []string{"Cleaner", "Family"},
	},
	"kwikset": {
		DeviceType:     "kwikset_lock",
		Manufacturer:   "Kwikset",
		Model:          "Halo Touchscreen",
		LockName:       "Garage Entry",
		CodeLengths:    lengths(4, 8),
		MaxCodes:       250, // MaxCodes assumed
		NameMin:        2,
		NameMax:        14,
		Constraints:    []constraintKind{startDateInFuture, nameUnique}, // nameUnique assumed
		PINVisible:     true,
		NativeSchedule: true,
		Convert:        "never",
		Latency:        ms(80, 300),
		Codes:          []string{"Cleaner", "Dog Walker"},
	},
	"igloohome": {
		DeviceType:     "igloohome_lock",
		Manufacturer:   "igloohome",
		Model:          "Deadbolt 2S",
		LockName:       "Beach House",
		CodeLengths:    lengths(4, 6),
		MaxCodes:       199,
		Constraints:    []constraintKind{startDateInFuture},
		PINVisible:     true,
		NativeSchedule: true,
		Convert:        "never",
		Hub:            true,
		Offline:        true,
		Latency:        ms(150, 500),
		Codes:          []string{"Housekeeping"},
	},
	"smartthings": {
		DeviceType:   "smartthings_lock",
		Manufacturer: "SmartThings",
		Model:        "Z-Wave Lock",
		LockName:     "Apartment 4B",
		CodeLengths:  lengths(4, 8),
		MaxCodes:     27, // 30 slots minus 3 reserved by the hub
		Convert:      "never",
		MinGap:       200 * time.Millisecond,
		Latency:      ms(100, 600),
		Codes:        []string{"Cleaner", "Contractor"},
	},
	"ttlock": {
		DeviceType:      "ttlock_lock",
		Manufacturer:    "TTLock",
		Model:           "Smart Cylinder",
		LockName:        "Office",
		CodeLengths:     lengths(4, 9),
		MaxCodes:        250,
		Constraints:     []constraintKind{cannotContain0789},
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         "adopt",
		AutoLock:        true,
		AccessoryKeypad: true,
		Hub:             true,
		Busy:            busyGateway,
		Latency:         ms(120, 350),
		Codes:           []string{"Reception", "Night Guard"},
	},
	"nuki": {
		DeviceType:      "nuki_lock",
		Manufacturer:    "Nuki",
		Model:           "Smart Lock Pro 4.0",
		LockName:        "City Flat",
		CodeLengths:     lengths(6, 6),
		MaxCodes:        100,
		NameMax:         20,
		Constraints:     []constraintKind{noZeros, cannotStartWith12},
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         "adopt",
		AutoLock:        true,
		AccessoryKeypad: true,
		Subscription:    true,
		Busy:            busyLock,
		PatchDropsTime:  true,
		Latency:         ms(150, 500),
		Codes:           []string{"Putzhilfe"},
	},
	"salto_ks": {
		DeviceType:     "salto_lock",
		Manufacturer:   "Salto",
		Model:          "Neo Cylinder",
		LockName:       "Coworking Hub",
		CodeLengths:    lengths(6, 6),
		MaxCodes:       100,
		Constraints:    []constraintKind{cannotSpecifyPINCode},
		PINVisible:     true,
		ProviderPIN:    true,
		NativeSchedule: true,
		Convert:        "adopt",
		Latency:        ms(50, 200),
		Codes:          []string{"Site Admin"},
	},
	"tedee": {
		DeviceType:      "tedee_lock",
		Manufacturer:    "Tedee",
		Model:           "Tedee PRO",
		LockName:        "Studio",
		CodeLengths:     lengths(5, 8),
		MaxCodes:        100, // MaxCodes assumed
		Constraints:     []constraintKind{threeUniqueDigits, noSequence},
		PINVisible:      true,
		NativeSchedule:  true,
		Convert:         "adopt",
		AutoLock:        true,
		AccessoryKeypad: true,
		Latency:         ms(80, 300),
		Codes:           []string{"Cleaner"},
	},
}

// Profiles returns the names of all profiles of locks, sorted.
func Profiles() []string { return slices.Sorted(maps.Keys(profiles)) }

// DefaultProfiles returns the names of the profiles of a new account: all locks, and one thermostat.
func DefaultProfiles() []string { return append(Profiles(), "ecobee") }

// HasProfile reports whether there is a profile with the name.
func HasProfile(name string) bool {
	_, ok := profileOf(name, 0)
	return ok
}

// isLock reports whether the devices of the profile are locks.
func (p profile) isLock() bool { return p.Thermostat == nil && p.Noise == nil }

// profileOf returns the profile of an account's nth device.
func profileOf(name string, n int) (profile, bool) {
	p, ok := profiles[name]
	if !ok {
		p, ok = thermostats[name]
	}
	if !ok {
		p, ok = noiseSensors[name]
	}
	p.Provider = name
	if p.PerLock {
		p.CodeLengths = p.CodeLengths[n%len(p.CodeLengths):][:1]
	}
	return p, ok
}
