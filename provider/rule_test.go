package provider

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
	"github.com/deviceaccess/terraform-provider-deviceaccess/test/tfcore"
)

// The rule: a PIN leaves a door only if the lock has refused it, or a plan with known values has shown it. The test
// walks every resource through every failure, at every time.

// ruleRow is a resource that the walk creates, plans, and destroys.
type ruleRow struct {
	config string // of one resource with the name rule
	// needsLock is whether the server cannot keep the resource without its lock.
	needsLock bool
}

// ruleRows has at least one row for each type of resource. After a comma, the key names the variant.
func ruleRows() map[string]ruleRow {
	const wait = "timeouts {\n    create = \"5s\"\n    delete = \"30s\"\n  }"
	onLock := func(more string) ruleRow {
		return ruleRow{config: "device_id = \"" + lockA + "\"\n  " + more + "\n"}
	}
	return map[string]ruleRow{
		"deviceaccess_access_code": onLock("name = \"Guest\"\n  code = \"" + longPIN + "\"\n  " + wait),
		"deviceaccess_shared_access_code": {
			config: "device_ids = [\"" + lockA + "\"]\n  name = \"Guest\"\n  code = \"" + longPIN + "\"\n  " + wait,
		},
		"deviceaccess_access_codes_exclusive": {
			config:    "device_id = \"" + lockA + "\"\n  access_code_ids = []\n",
			needsLock: true,
		},
		"deviceaccess_webhook":         {config: `url = "https://example.com/a"`},
		"deviceaccess_connect_webview": {},
		deviceType: {
			config:    "device_id = \"" + lockA + "\"\n  name = \"Porch\"\n",
			needsLock: true,
		},
		acsUserType: {
			config: "acs_system_id = \"" + keeper + "\"\n  full_name = \"Jane\"\n  " + wait,
		},
		acsUserType + ", suspended": {
			config: "acs_system_id = \"" + keeper + "\"\n  full_name = \"Jane\"\n  is_suspended = true\n  " + wait,
		},
		identityType: {config: `full_name = "Jane"`},
		presetType: {
			config:    "device_id = \"" + lockA + "\"\n  climate_preset_key = \"occupied\"\n  " + heatsTo70F + "\n",
			needsLock: true,
		},
		scheduleType: {
			config: "device_id = \"" + lockA + "\"\n  climate_preset_key = \"occupied\"\n  " +
				"starts_at = \"2040-06-01T15:00:00Z\"\n  ends_at = \"2040-06-02T15:00:00Z\"\n",
			needsLock: true,
		},
		thresholdType: {
			config: "device_id = \"" + lockA + "\"\n  starts_daily_at = \"22:00:00\"\n  ends_daily_at = \"07:00:00\"\n  " +
				"noise_threshold_decibels = 60\n  " + wait,
			needsLock: true,
		},
	}
}

// ruleFaults are the failures that begin once the server has accepted something. The result ends the failure.
var ruleFaults = map[string]func(w *ruleWalk) (end func()){
	"the lock is removed": func(w *ruleWalk) func() {
		w.f.do(func() { w.removeLock() })
		return func() {}
	},
	"the server is stopped": func(w *ruleWalk) func() {
		return w.answerAll(answerRaw(http.StatusServiceUnavailable, "text/html", "", "Retry-After", "3600"))
	},
	"the key is revoked": func(w *ruleWalk) func() {
		return w.answerAll(answerError(http.StatusUnauthorized, "unauthorized", "API Key not found"))
	},
	"the apply is interrupted": func(w *ruleWalk) func() {
		_, _ = w.server.StopProvider(w.t.Context(), &tfprotov6.StopProviderRequest{})
		return func() {}
	},
}

// ruleWalk is one resource and one failure.
type ruleWalk struct {
	*directory
	f       *fake
	address string
	server  tfprotov6.ProviderServer // of the running command
	failure atomic.Pointer[http.HandlerFunc]
	begin   atomic.Pointer[func()] // begins the failure after the next request
	writes  bool                   // that writes
}

func startRuleWalk(t *testing.T, typeName string, row ruleRow) *ruleWalk {
	t.Helper()
	w := &ruleWalk{f: startFakeLocks(t), address: typeName + ".rule"}
	w.directory = &directory{t: t, core: tfcore.New(t, "deviceaccess", func() tfprotov6.ProviderServer {
		w.server = NewServer("test")()
		return w.server
	}), files: map[string]string{
		"main.tf": required + w.f.config("resource \""+typeName+"\" \"rule\" {\n  "+row.config+"\n}\n"),
	}}
	front := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if failure := w.failure.Load(); failure != nil {
			(*failure)(rw, r)
			return
		}
		w.f.ServeHTTP(rw, r)
		if !w.writes || len(w.f.writes()) > 0 {
			if begin := w.begin.Swap(nil); begin != nil {
				(*begin)()
			}
		}
	})
	w.f.front.Store(&front)
	return w
}

// removeLock is the owner who removes the lock from the account: its codes stay, out of reach. What it has as a
// thermostat or a noise sensor goes with it.
func (w *ruleWalk) removeLock() {
	clear(w.f.schedules)
	clear(w.f.thresholds)
	w.f.removed[lockA] = true
	w.f.devices = slices.DeleteFunc(w.f.devices, func(d map[string]any) bool { return d["device_id"] == lockA })
	for _, code := range w.f.codes {
		code.status, code.errors = "unknown", []map[string]any{{
			"error_code": "device_removed", "message": "The device was removed.", "is_device_error": true,
		}}
	}
}

// answerAll answers every request with a failure.
func (w *ruleWalk) answerAll(failure http.HandlerFunc) (end func()) {
	w.failure.Store(&failure)
	return func() { w.failure.Store(nil) }
}

// strike begins a failure: at once, or after the next request.
func (w *ruleWalk) strike(fault func(*ruleWalk) func(), now bool) (end func()) {
	ended := func() {}
	begin := func() { ended = fault(w) }
	if now {
		begin()
	} else {
		w.begin.Store(&begin)
	}
	return func() { w.begin.Store(nil); ended() }
}

// locksAnswer makes locks take what they are sent, or never answer.
func (w *ruleWalk) locksAnswer(answer bool) {
	w.f.do(func() {
		w.f.nextAttempt = func(a *fakeAttempt) { a.looks = 1000 }
		if answer {
			w.f.nextAttempt = nil
		}
	})
}

// exists reports whether the server has what the resource has created.
func (w *ruleWalk) exists() bool {
	_, presets := w.f.presets(lockA)
	return len(w.f.codes)+len(w.f.webhooks)+len(w.f.webviews)+len(w.f.acsUsers)+len(w.f.identities)+
		len(presets)+len(w.f.schedules)+len(w.f.thresholds) > 0
}

// deletions are the requests that take something off a door or a server.
func (w *ruleWalk) deletions() []string {
	return slices.DeleteFunc(w.f.writes(), func(path string) bool { return !strings.HasSuffix(path, "/delete") })
}

// expectKept checks that nothing was deleted, and that nothing that exists will be replaced.
func (w *ruleWalk) expectKept(existed bool) {
	w.t.Helper()
	if deleted := w.deletions(); len(deleted) > 0 {
		w.t.Errorf("%q were requested", deleted)
	}
	if w.core.IsTainted(w.address) {
		w.t.Error("it is tainted")
	}
	w.expect(true, "plan")
	action := w.saved.Action(w.address)
	if action != tfcore.NoOp && action != tfcore.Update && (existed || action != tfcore.Create) {
		w.t.Errorf("the next plan is to %s it", action)
	}
}

func TestRule_EveryResourceThroughEveryFailure(t *testing.T) {
	t.Parallel()
	rows := ruleRows()
	expectRowForEachResource(t, rows)
	for what, row := range rows {
		typeName, _, _ := strings.Cut(what, ",")
		for _, name := range slices.Sorted(maps.Keys(ruleFaults)) {
			fault, removed := ruleFaults[name], name == "the lock is removed"
			for _, now := range []bool{true, false} {
				when := map[bool]string{true: " before", false: " during"}[now]
				t.Run(what+", "+name+when+" plan", func(t *testing.T) {
					t.Parallel()
					w := startRuleWalk(t, typeName, row)
					w.expect(true, "apply", "-auto-approve")
					end := w.strike(fault, now)
					if ok := w.command("plan"); removed && !ok {
						t.Errorf("the plan fails:\n%s", w.seen.String())
					}
					end()
					w.expectKept(!removed || !row.needsLock)
					w.expect(true, "destroy", "-auto-approve")
				})
				t.Run(what+", "+name+when+" destroy", func(t *testing.T) {
					t.Parallel()
					w := startRuleWalk(t, typeName, row)
					w.expect(true, "apply", "-auto-approve")
					w.expect(true, "plan", "-destroy")
					end := w.strike(fault, now)
					if ok := w.command("apply", "plan"); removed && !ok {
						t.Errorf("the destroy fails:\n%s", w.seen.String())
					}
					end()
					w.expect(true, "destroy", "-auto-approve")
				})
			}
			for when, afterWrite := range map[string]bool{" during apply": false, " after a creation": true} {
				t.Run(what+", "+name+when, func(t *testing.T) {
					t.Parallel()
					w := startRuleWalk(t, typeName, row)
					w.expect(true, "plan")
					w.locksAnswer(false)
					w.writes = afterWrite
					end := w.strike(fault, false)
					ok := w.command("apply", "plan")
					if !ok && w.exists() {
						t.Errorf("the apply fails after the server has accepted it:\n%s", w.seen.String())
					}
					end()
					w.locksAnswer(true)
					if ok || w.exists() || !removed {
						w.expectKept(w.exists())
					}
					w.expect(true, "destroy", "-auto-approve")
				})
			}
		}
	}
}

// A conversion that the server has accepted goes on, whatever the apply learns of it.
func TestRule_ConversionThroughEveryFailure(t *testing.T) {
	t.Parallel()
	rows := map[string]string{
		"deviceaccess_access_code": "device_id = \"" + lockA + "\"\n",
		"deviceaccess_shared_access_code": "device_ids = [\"" + lockA + "\"]\n  name = \"Nanny\"\n  code = \"" +
			longPIN + "\"\n",
	}
	for typeName, config := range rows {
		row := ruleRow{config: config + "  timeouts {\n    update = \"5s\"\n  }\n"}
		for name, fault := range ruleFaults {
			for outcome, converts := range map[string]bool{"it happens": true, "it does not happen": false} {
				t.Run(typeName+", "+name+", "+outcome, func(t *testing.T) {
					t.Parallel()
					w := startRuleWalk(t, typeName, row)
					id := w.f.unmanaged(fakeCode{name: "Nanny", code: longPIN})
					w.files["import.tf"] = "import {\n  to = " + w.address + "\n  id = \"" + lockA + "/" + id + "\"\n}\n"
					w.expect(true, "plan")
					w.locksAnswer(false)
					w.writes = true
					end := w.strike(fault, false)
					// The interruption comes before the answer of the server.
					if !w.command("apply", "plan") && name != "the apply is interrupted" {
						t.Errorf("the apply fails after the server has accepted the conversion:\n%s", w.seen.String())
					}
					end()
					w.f.do(func() { w.f.codes[id].managed = w.f.codes[id].managed || converts })
					w.locksAnswer(true)
					w.expectKept(true)
					w.expect(true, "apply", "-auto-approve")
					w.expect(true, "plan", "-detailed-exitcode")
					if deleted := w.deletions(); len(deleted) > 0 || !w.f.codes[id].managed {
						t.Errorf("%q were requested, and the code is managed: %t", deleted, w.f.codes[id].managed)
					}
				})
			}
		}
	}
}

// Terraform rejects a result with unknown values as a bug of the provider.
func TestUnconverted_LeavesNothingUnknown(t *testing.T) {
	t.Parallel()
	plan := &accessCodeModel{
		Name:                          types.StringUnknown(),
		Code:                          types.StringUnknown(),
		Type:                          types.StringUnknown(),
		Status:                        types.StringUnknown(),
		CreatedAt:                     types.StringUnknown(),
		CommonCodeKey:                 types.StringUnknown(),
		IsExternalModificationAllowed: types.BoolUnknown(),
		Errors:                        types.ListUnknown(problemType),
		Backup: backup{
			types.BoolValue(true),
			types.BoolUnknown(),
			types.StringUnknown(),
		}.object(),
	}
	kept := reflect.ValueOf(plan.unconverted(&accessCodeModel{})).Elem()
	for i := range kept.NumField() {
		value, ok := kept.Field(i).Interface().(attr.Value)
		if !ok || value.IsNull() {
			continue
		}
		raw, err := value.ToTerraformValue(t.Context())
		if err != nil || !raw.IsFullyKnown() {
			t.Errorf("%s is not known: %v", kept.Type().Field(i).Name, err)
		}
	}
}

func TestRemovedLock_OfServerThatListsUnmanagedCodesOnly(t *testing.T) {
	t.Parallel()
	w := startRuleWalk(t, "deviceaccess_access_code", ruleRow{config: "device_id = \"" + lockA + "\"\n"})
	w.f.noUnmanagedGet = true
	w.expect(true, "apply", "-auto-approve")
	w.f.do(func() { w.removeLock(); clear(w.f.codes) })
	w.expect(true, "plan")
	w.expect(true, "destroy", "-auto-approve")
}

func TestServerRemovedLock_BlocksNoPlanAndNoDestroy(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	device := srv.Device(t, "august")
	w := newDirectory(t, map[string]string{"main.tf": required + onServer(srv,
		accessCodeOn(device, "name = \"Guest\"\n  timeouts {\n    delete = \"30s\"\n  }")+
			webhook("https://example.com/a", ""))})
	w.expect(true, "apply", "-auto-approve")
	status := srv.Post(t, "/devices/simulate/remove", map[string]any{"device_id": device}, nil)
	if status != http.StatusOK {
		t.Fatalf("remove the device: %d", status)
	}
	w.expect(true, "plan")
	w.expect(true, "destroy", "-auto-approve")
}
