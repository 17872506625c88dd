package console

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/audit"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/overview"
)

// timeline is what happened to a lock or a code, newest first.
type timeline struct {
	items []overview.TimelineItem
	next  string
	codes map[uuid.UUID]string // names of the codes that still exist
	zone  string
}

// readTimeline reads the page of a timeline that the URL names.
func (h *handler) readTimeline(rq *request, f overview.TimelineFilter) (t timeline, err error) {
	from := overview.ParsePosition(rq.query(afterParam))
	items, next, err := h.Access.Overview.Timeline(rq.r.Context(), rq.workspace.ID, f, from, pageRows)
	if err != nil {
		return t, err
	}
	t = timeline{items: items, next: next.String(), codes: map[uuid.UUID]string{}}
	if f.Code != uuid.Nil {
		return t, nil
	}
	var ids []uuid.UUID
	for _, i := range items {
		if i.Code != uuid.Nil && !slices.Contains(ids, i.Code) {
			ids = append(ids, i.Code)
		}
	}
	codes, err := h.readCodes(rq, ids)
	for _, c := range codes {
		t.codes[c.id] = c.name
	}
	return t, err
}

// sourceWords are the sources of a timeline in words.
var sourceWords = map[overview.TimelineSource]string{
	overview.FromEvent:   "Event",
	overview.FromAttempt: "Attempt",
	overview.FromAudit:   "Person or key",
}

// itemText returns an item of a timeline in words.
func itemText(i overview.TimelineItem) string {
	switch i.Source {
	case overview.FromEvent:
		return cmp.Or(device.EventDescription(i.What), eventWords[i.What], fallbackWords(i.What))
	case overview.FromAttempt:
		return cmp.Or(attemptWords[i.What], fallbackWords(i.What)) + attemptEnds[i.Status]
	}
	return cmp.Or(operationWords[i.What], i.What)
}

// itemDetail returns more about an item; empty: nothing.
func itemDetail(i overview.TimelineItem) string {
	if i.Source == overview.FromEvent && !strings.Contains(i.Detail, " ") {
		return cmp.Or(methodWords[i.Detail], fallbackWords(i.Detail))
	}
	return i.Detail
}

// itemTone is the color of an item.
func itemTone(i overview.TimelineItem) tone {
	switch {
	case i.Source == overview.FromAttempt && i.Status == "error",
		i.Source == overview.FromEvent && (strings.Contains(i.What, "failed") || i.What == "device.disconnected" ||
			i.What == "device.removed" || i.What == "device.tampered"):
		return bad
	case i.Source == overview.FromAttempt && i.Status == "pending", strings.Contains(i.What, ".delay_"):
		return warning
	case i.Source == overview.FromAudit:
		return news
	}
	return idle
}

// timelineActor returns the actor of an audit entry in words.
func timelineActor(i overview.TimelineItem) string {
	switch i.ActorKind {
	case "":
		return ""
	case "operator":
		return i.ActorName
	case audit.ByCommandLine:
		return strings.TrimSpace(i.ActorName + " on the command line")
	case audit.ByPage:
		return "a person on a connect page"
	case string(domain.EndUser):
		return "a client session"
	}
	return "key " + cmp.Or(i.ActorName, "without a name")
}

// fallbackWords turns a name of the API into words.
func fallbackWords(name string) string {
	words := strings.ToLower(strings.NewReplacer("_", " ", ".", ": ").Replace(name))
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// eventWords describe events of devices.
var eventWords = map[string]string{
	"device.added":                                "The device was found.",
	"device.connected":                            "The device is online.",
	"device.disconnected":                         "The device is offline.",
	"device.unmanaged.connected":                  "The device is online.",
	"device.unmanaged.disconnected":               "The device is offline.",
	"device.unmanaged.converted_to_managed":       "The device became managed.",
	"device.converted_to_unmanaged":               "The device became unmanaged.",
	"device.removed":                              "The device has left its account.",
	"device.deleted":                              "The record of the device was deleted.",
	"device.name_changed":                         "The device was renamed.",
	"device.low_battery":                          "The battery is low.",
	"device.battery_status_changed":               "The battery state changed.",
	"device.connection_became_flaky":              "The connection became unstable.",
	"device.connection_stabilized":                "The connection is stable again.",
	"device.tampered":                             "The device reports tampering.",
	"device.error.subscription_required":          "The vendor requires a subscription.",
	"device.error.subscription_required.resolved": "The vendor's subscription is in order.",
	"device.accessory_keypad_connected":           "A keypad was connected.",
	"device.accessory_keypad_disconnected":        "The keypad was disconnected.",
	"device.doorbell_rang":                        "The doorbell rang.",
	"lock.locked":                                 "The door was locked.",
	"lock.unlocked":                               "The door was unlocked.",
	"lock.access_denied":                          "The lock refused a code.",
}

// methodWords are the methods of lock events.
var methodWords = map[string]string{
	"keycode":   "with a code",
	"manual":    "by hand",
	"automatic": "automatically",
	"remote":    "remotely",
	"unknown":   "method unknown",
	"seamapi":   "by this server",
}

// attemptWords are the types of action attempts.
var attemptWords = map[string]string{
	domain.LockDoor:                  "Lock the door",
	domain.UnlockDoor:                "Unlock the door",
	domain.ConfigureAutoLock:         "Change auto-lock",
	domain.CreateAccessCode:          "Set the code",
	domain.UpdateAccessCode:          "Change the code",
	domain.DeleteAccessCode:          "Remove the code",
	domain.ConvertAccessCode:         "Make the code managed",
	domain.DeleteUnmanagedAccessCode: "Remove the unmanaged code",
	domain.SimulateKeypadCodeEntry:   "Simulate a code at the keypad",
	domain.SimulateManualLock:        "Simulate locking by hand",
}

// attemptEnds are the states of attempts, after the type.
var attemptEnds = map[string]string{"pending": ": waiting", "success": ": done", "error": ": failed"}

// operationWords are operations of the audit log.
var operationWords = map[string]string{
	"/access_codes/create":                       "Created the code",
	"/access_codes/create_multiple":              "Created codes on several locks",
	"/access_codes/update":                       "Changed the code",
	"/access_codes/update_multiple":              "Changed codes on several locks",
	"/access_codes/delete":                       "Removed the code",
	"/access_codes/pull_backup_access_code":      "Pulled a backup code",
	"/access_codes/unmanaged/convert_to_managed": "Made codes managed",
	"/access_codes/unmanaged/update":             "Made a code managed",
	"/access_codes/unmanaged/delete":             "Removed an unmanaged code",
	"/locks/lock_door":                           "Locked the door",
	"/locks/unlock_door":                         "Unlocked the door",
	"/locks/configure_auto_lock":                 "Changed auto-lock",
	"/devices/update":                            "Changed the device's settings",
	"/devices/delete":                            "Deleted the device",
	refreshOperation:                             "Asked for a refresh",
	revealOperation:                              "Saw the PIN",
}
