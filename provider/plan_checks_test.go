package provider

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

const sharedCodeType = "deviceaccess_shared_access_code"

// planned is what a plan says: one line for each diagnostic, "E" or "W" and its attribute and summary.
type planned struct {
	lines   []string
	details string
	plan    *tfprotov6.PlanResourceChangeResponse
}

// changes plans a resource as terraform plan does. A nil state plans a new one.
func (p *plugin) changes(
	typeName string, state *tfprotov6.DynamicValue, attributes map[string]tftypes.Value,
) (said planned) {
	p.t.Helper()
	of := p.stateType(typeName)
	config, proposed := maps.Clone(attributes), maps.Clone(attributes)
	if state == nil {
		state = p.pack(tftypes.NewValue(of, nil))
	} else {
		p.fillComputed(typeName, state, proposed)
	}
	delete(proposed, "code_wo")
	var err error
	said.plan, err = p.server.PlanResourceChange(p.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         typeName,
		PriorState:       state,
		ProposedNewState: p.pack(object(of, proposed)),
		Config:           p.pack(object(of, config)),
		PriorPrivate:     seenIn(fakeWorkspace),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, d := range said.plan.Diagnostics {
		severity := "W"
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			severity = "E"
		}
		attribute := "-"
		if d.Attribute != nil {
			attribute = string(d.Attribute.Steps()[0].(tftypes.AttributeName))
		}
		said.lines = append(said.lines, severity+" "+attribute+" "+d.Summary)
		said.details += d.Detail + "\n"
	}
	return said
}

// fillComputed copies the computed attributes of the state that the configuration leaves out, as Terraform does.
func (p *plugin) fillComputed(typeName string, state *tfprotov6.DynamicValue, proposed map[string]tftypes.Value) {
	p.t.Helper()
	value, err := state.Unmarshal(p.stateType(typeName))
	if err != nil {
		p.t.Fatal(err)
	}
	var stored map[string]tftypes.Value
	if err := value.As(&stored); err != nil {
		p.t.Fatal(err)
	}
	for _, attribute := range p.schemas.ResourceSchemas[typeName].Block.Attributes {
		if _, isSet := proposed[attribute.Name]; attribute.Computed && !isSet {
			proposed[attribute.Name] = stored[attribute.Name]
		}
	}
}

// expect fails the test unless the plan has exactly these diagnostics, and its details contain these texts.
func (s planned) expect(t *testing.T, lines []string, details ...string) {
	t.Helper()
	if !slices.Equal(s.lines, lines) {
		t.Errorf("the plan says %q, want %q\n%s", s.lines, lines, s.details)
	}
	for _, text := range details {
		if !strings.Contains(s.details, text) {
			t.Errorf("no word of %q in\n%s", text, s.details)
		}
	}
}

func texts(ids ...string) tftypes.Value {
	var values []tftypes.Value
	for _, id := range ids {
		values = append(values, text(id))
	}
	return tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, values)
}

// codeOf is the configuration of a code from pairs of names and values.
func codeOf(device string, pairs ...string) map[string]tftypes.Value {
	attributes := map[string]tftypes.Value{"device_id": text(device)}
	for i := 0; i+1 < len(pairs); i += 2 {
		attributes[pairs[i]] = text(pairs[i+1])
	}
	return attributes
}

func TestServerPlan_ChecksPINsAgainstLocks(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("nuki", "tedee", "ttlock", "salto_ks"))
	settings := map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey}
	const unfit, vendor = "E - PIN does not fit the lock", "E - PIN cannot be chosen for the lock"
	for _, c := range []struct {
		profile string
		pairs   []string
		lines   []string
		details string
	}{
		{"nuki", []string{"code", "481562"}, nil, ""},
		{"nuki", []string{"code", "4815"}, []string{unfit}, "a PIN must have 6 digits. Choose another PIN."},
		{"nuki", []string{"code", "481560"}, []string{unfit}, "must not contain 0 (no_zeros)"},
		{"nuki", []string{"code", "124569"}, []string{unfit}, "must not start with 12"},
		{
			"nuki",
			[]string{"code", "1204"},
			[]string{unfit, unfit, unfit},
			`On the lock "City Flat" (` + srv.Device(t, "nuki") + ")",
		},
		{"tedee", []string{"code", "11112"}, []string{unfit}, "at least three different digits"},
		{"tedee", []string{"code", "45678"}, []string{unfit}, "ascending or descending sequence"},
		{"ttlock", []string{"code", "4815"}, []string{unfit}, "must not contain 0, 7, 8, or 9"},
		{"salto_ks", []string{"code", "481562"}, []string{vendor}, "Leave `code` and `code_wo` out"},
		{"salto_ks", []string{"name", "Guest"}, nil, ""},
		{
			"salto_ks",
			[]string{"common_code_key", "staff"},
			[]string{"E common_code_key PIN cannot be chosen for the lock"},
			"Leave `common_code_key` out",
		},
	} {
		p := startPlugin(t, settings) // codes of one plan are compared
		said := p.changes(codeType, nil, codeOf(srv.Device(t, c.profile), c.pairs...))
		said.expect(t, c.lines, c.details)
		if c.pairs[0] == "code" && strings.Contains(said.details, c.pairs[1]) {
			t.Errorf("the PIN %s is shown:\n%s", c.pairs[1], said.details)
		}
	}
	writeOnly := codeOf(srv.Device(t, "nuki"), "code_wo", "4815")
	writeOnly["code_wo_version"] = tftypes.NewValue(tftypes.Number, 1)
	startPlugin(t, settings).changes(codeType, nil, writeOnly).expect(t, []string{unfit}, "a PIN must have 6 digits")
}

func TestServerPlan_ChecksSharedCodesAgainstAllLocks(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("nuki", "tedee", "salto_ks", "kwikset", "igloohome"))
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	shared := func(pin string, profiles ...string) map[string]tftypes.Value {
		attributes := map[string]tftypes.Value{"name": text("Nanny 4711")}
		if pin != "" {
			attributes["code"] = text(pin)
		}
		var devices []string
		for _, profile := range profiles {
			devices = append(devices, srv.Device(t, profile))
		}
		attributes["device_ids"] = texts(devices...)
		return attributes
	}
	p.changes(sharedCodeType, nil, shared("481562", "nuki", "tedee")).expect(t, nil)
	p.changes(sharedCodeType, nil, shared("4815", "nuki", "tedee")).expect(t, []string{
		"E - PIN does not fit the lock", "E - PIN does not fit the lock",
	}, "a PIN must have 6 digits", "a PIN must have 5 to 8 digits")
	p.changes(sharedCodeType, nil, shared("481563", "nuki", "salto_ks")).expect(t, []string{
		"E device_ids PIN cannot be chosen for the lock",
	}, `On the lock "Coworking Hub"`, "Remove the lock from `device_ids`. Declare its code with deviceaccess_access_code")
	p.changes(sharedCodeType, nil, shared("", "nuki", "salto_ks")).expect(t, []string{
		"E device_ids No PIN fits all locks",
	}, `"Coworking Hub"`)
	p.changes(sharedCodeType, nil, shared("", "nuki", "tedee")).expect(t, nil)
	p.changes(sharedCodeType, nil, shared("98765432", "kwikset", "igloohome")).expect(t, []string{
		"E - PIN does not fit the lock",
	}, "a PIN must have 4 to 6 digits")
}

func TestServerPlan_WarnsOfPINsNamesAndSlotsThatAreTaken(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "kwikset", "smartthings"))
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	august, kwikset, smartthings := srv.Device(t, "august"), srv.Device(t, "kwikset"), srv.Device(t, "smartthings")
	var made api.AccessCodeCreatedResponse
	srv.Post(
		t,
		"/access_codes/create",
		map[string]any{"device_id": august, "name": "Guest 4815", "code": "4815"},
		&made,
	)
	other := srv.UnmanagedCodes(t, august)[0]
	for i := range 25 { // and 2 unmanaged ones: 27 fit
		create := map[string]any{"device_id": smartthings, "name": fmt.Sprint("Guest ", i)}
		if status := srv.Post(t, "/access_codes/create", create, nil); status != http.StatusOK {
			t.Fatalf("create a code: %d", status)
		}
	}
	said := p.changes(codeType, nil, codeOf(august, "code", "4815"))
	said.expect(t, []string{"W - PIN is already on the lock"}, "the managed code "+made.AccessCode.AccessCodeID,
		"moved block", "import it as `"+august+"/"+made.AccessCode.AccessCodeID+"`")
	if strings.Contains(said.details, "4815") {
		t.Errorf("the PIN is shown:\n%s", said.details)
	}
	p.changes(codeType, nil, codeOf(august, "code", *other.Code)).expect(t, []string{"W - PIN is already on the lock"},
		"the unmanaged code "+other.AccessCodeID, "import it as `"+august+"/"+other.AccessCodeID+"`")
	p.changes(codeType, nil, codeOf(kwikset, "name", "Dog Walker")).expect(t, []string{
		"W name Name is already on the lock",
	}, "names must be unique (name_must_be_unique)", `"Dog Walker"`)
	p.changes(codeType, nil, codeOf(august, "name", "Owner")).expect(t, nil)
	p.changes(codeType, nil, codeOf(smartthings)).expect(t, []string{"W device_id Lock is full"},
		"at most 27 codes fit, and 27 are there", "fails unless a code leaves the lock first")
}

func TestServerPlan_ChecksThatTheDeviceExists(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	if status := srv.Post(
		t, "/devices/update", map[string]any{"device_id": yale, "is_managed": false}, nil,
	); status != http.StatusOK {
		t.Fatalf("give the device up: %d", status)
	}
	const named, absent = "Name instead of an identifier", "00000000-0000-4000-8000-000000000001"
	p.changes(codeType, nil, codeOf("Front Door")).expect(t, []string{"E device_id " + named},
		`"Front Door" is the name of a device`, `Write "`+august+`"`, "`device_id` takes identifiers")
	p.changes(codeType, nil, codeOf("nope")).expect(t, []string{"E device_id Invalid identifier"}, `"nope"`)
	p.changes(codeType, nil, codeOf(absent)).expect(t, []string{"W device_id Device not found"}, absent)
	p.changes(codeType, nil, codeOf(yale)).expect(t, []string{"W device_id Device is not managed"}, yale)
	p.changes(sharedCodeType, nil, map[string]tftypes.Value{
		"name": text("Nanny"), "code": text("4815"), "device_ids": texts("Front Door", absent, august),
	}).expect(t, []string{"W device_ids Device not found", "E device_ids " + named}, `Write "`+august+`"`)
}

func TestServerPlan_WarnsThatApplyWillWait(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	august, yale := srv.Device(t, "august"), srv.Device(t, "yale")
	settings := map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey}
	srv.Lock(t, august).Control(t, http.MethodPost, "/offline", nil)
	apptest.Until(t, "the server knows", func() bool { return !onlineNow(t, srv, august) })
	p := startPlugin(t, settings)
	p.changes(codeType, nil, codeOf(august)).expect(t, []string{"W device_id Lock is offline"},
		"Applying this plan waits until the lock is reachable, or `timeouts` ends")
	p.changes(codeType, nil, codeOf(yale)).expect(t, nil)
	later := codeOf(august, "starts_at", "2099-01-01T00:00:00Z", "ends_at", "2099-01-02T00:00:00Z")
	p.changes(codeType, nil, later).expect(t, nil)
	now := codeOf(august)
	now["wait_until_on_lock"] = tftypes.NewValue(tftypes.Bool, false)
	p.changes(codeType, nil, now).expect(t, nil)
	now["attempt_for_offline_device"] = tftypes.NewValue(tftypes.Bool, false)
	p.changes(codeType, nil, now).expect(t, []string{"W device_id Lock is offline"}, "the server rejects the code")
	p.changes(sharedCodeType, nil, map[string]tftypes.Value{
		"name": text("Nanny"), "code": text("4815"), "device_ids": texts(august, yale),
	}).expect(t, []string{"W device_ids Lock is offline"}, `On the lock "Front Door"`)

	srv.Lock(t, yale).Account(t, "revoke")
	apptest.Until(t, "the server knows", func() bool {
		var found api.DeviceResponse
		srv.Post(t, "/devices/get", map[string]any{"device_id": yale}, &found)
		return slices.ContainsFunc(found.Device.Errors, func(e api.Problem) bool {
			return e.ErrorCode == "account_disconnected"
		})
	})
	p = startPlugin(t, settings)
	p.changes(codeType, nil, codeOf(yale)).expect(t, []string{"W device_id Account of the lock is disconnected"},
		"Its owner must log in again")
}

func TestServerPlan_ChecksEventTypes(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"))
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	hook := func(eventTypes ...string) map[string]tftypes.Value {
		return map[string]tftypes.Value{"url": text("https://example.com/a"), "event_types": texts(eventTypes...)}
	}
	before := srv.Count("/webhooks/update")
	p.changes(webhookType, nil, hook("*")).expect(t, nil)
	if got := srv.Count("/webhooks/update"); got != before {
		t.Errorf("%d requests for all event types", got-before)
	}
	for range 3 {
		p.changes(webhookType, nil, hook("device.connected")).expect(t, nil)
		p.changes(webhookType, nil, hook("device.connected", "access_code.setondevice")).expect(t,
			[]string{"E event_types Unknown event type"}, "No such event type: access_code.setondevice")
	}
	if got := srv.Count("/webhooks/update") - before; got != 2 {
		t.Errorf("%d requests for two lists of event types", got)
	}
	state := p.pack(object(p.stateType(webhookType), maps.Clone(hook("access_code.setondevice"))))
	p.changes(webhookType, state, hook("access_code.setondevice")).expect(t, nil)
}

func TestServerPlan_ChecksOnlyWhatChanges(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("nuki"))
	device := srv.Device(t, "nuki")
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	state := func(pin string) *tfprotov6.DynamicValue {
		attributes := codeOf(device, "code", pin, "name", "Guest", "status", "set", "type", "ongoing")
		attributes["access_code_id"] = text(uuid.NewString())
		attributes["is_managed"] = tftypes.NewValue(tftypes.Bool, true)
		return p.pack(object(p.stateType(codeType), attributes))
	}
	const unfit = "E - PIN does not fit the lock"
	requests := len(srv.Requests())
	p.changes(codeType, state("4815"), codeOf(device, "code", "4815", "name", "Guest")).expect(t, nil)
	destroyed, err := p.server.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         codeType,
		PriorState:       state("4815"),
		ProposedNewState: p.pack(tftypes.NewValue(p.stateType(codeType), nil)),
		Config:           p.pack(tftypes.NewValue(p.stateType(codeType), nil)),
	})
	if err != nil || len(destroyed.Diagnostics) > 0 {
		t.Errorf("the destroy says %v, %v", destroyed.Diagnostics, err)
	}
	if got := len(srv.Requests()) - requests; got != 0 {
		t.Errorf("%d requests without a change", got)
	}
	p.changes(codeType, state("4815"), codeOf(device, "code", "4815", "name", "Guest B")).expect(t, nil)
	p.changes(codeType, state("481562"), codeOf(device, "code", "4815", "name", "Guest")).expect(t, []string{unfit})
	replaced := p.changes(codeType, state("4815"), codeOf(uuid.NewString(), "code", "4815")) // planned again
	replaced.expect(t, []string{"W device_id Replacement without a refresh"})
}

func TestServerPlan_JudgesPINsAsTheServerDoes(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t)
	var list api.DevicesResponse
	srv.Post(t, "/devices/list", map[string]any{}, &list)
	if len(list.Devices) < 10 {
		t.Fatalf("%d devices", len(list.Devices))
	}
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	for _, device := range list.Devices {
		for _, pin := range []string{
			"4615", "46153", "461532", "3579135", "46153261", "461532619", "345678", "121294", "550055", "331133",
		} {
			said := p.changes(codeType, nil, codeOf(device.DeviceID, "code", pin))
			refused := slices.ContainsFunc(said.lines, func(line string) bool { return line[0] == 'E' })
			create := map[string]any{"device_id": device.DeviceID, "code": pin}
			if status := srv.Post(
				t,
				"/access_codes/create",
				create,
				nil,
			); (status == http.StatusBadRequest) != refused {
				t.Errorf(
					"%s, %s: the server answers %d, and the plan says %q",
					device.DeviceType,
					pin,
					status,
					said.lines,
				)
			}
		}
	}
}

// plainLock is a device of a fake that takes codes of four digits.
func plainLock(id string, more map[string]any) map[string]any {
	properties := map[string]any{"supported_code_lengths": []int{4}, "max_active_codes_supported": 100}
	maps.Copy(properties, more)
	return device(id, "august_lock", properties)
}

func TestPlanOfManyCodesChecksLocksWithFewRequests(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	stocked, locks := f.stock(20, 25, true), map[string]bool{}
	for _, lock := range stocked {
		if !locks[lock] {
			locks[lock] = true
			f.devices = append(f.devices, plainLock(lock, nil))
		}
	}
	p := f.plugin(t)
	var pin atomic.Int64
	pin.Store(1000)
	each(stocked, func(id, lock string) {
		p.refreshes(id, lock)
		p.changes(codeType, nil, codeOf(lock, "code", fmt.Sprint(pin.Add(1)), "name", id)).expect(t, nil)
	})
	if asked := f.asked(); asked > 45 {
		t.Errorf("%d requests", asked)
	}
	f.expectWrites(t, "after the plan")
}

func TestPlanIsNotCheckedWhereTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	broken := answerRaw(http.StatusInternalServerError, "text/plain", "")
	for name, c := range map[string]struct {
		change func(*fake)
		most   int
	}{
		"no list of devices": {func(f *fake) { f.lacks = []string{"/devices/list"} }, 1},
		"the list fails":     {func(f *fake) { f.then("/devices/list", broken) }, 1},
		"not on the list, and the read fails": {func(f *fake) {
			f.devices = []map[string]any{}
			f.then("/devices/get", broken)
		}, 2},
		"no lists of codes": {
			func(f *fake) { f.lacks = []string{"/access_codes/list", "/access_codes/unmanaged/list"} }, 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			f.devices = append(f.devices, plainLock(fakeDevice, nil))
			c.change(f)
			p := f.plugin(t)
			for i := range 5 {
				p.changes(codeType, nil, codeOf(fakeDevice, "code", fmt.Sprint(4811+i))).expect(t, nil)
			}
			if asked := f.asked(); asked > c.most {
				t.Errorf("%d requests", asked)
			}
		})
	}
}

func TestPlanIsNotCheckedWhileAValueIsUnknown(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, nil))
	unknown := tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	later := startPluginWith(t, map[string]tftypes.Value{"endpoint": unknown, "api_key": text(fakeKey)})
	later.changes(codeType, nil, codeOf(fakeDevice, "code", "48156")).expect(t, nil)
	later.changes(webhookType, nil, map[string]tftypes.Value{
		"url": text("https://example.com/a"), "event_types": texts("no.such_type"),
	}).expect(t, nil)
	p := f.plugin(t)
	lock := codeOf(fakeDevice, "code", "48156")
	lock["device_id"] = unknown
	p.changes(codeType, nil, lock).expect(t, nil)
	pin := codeOf(fakeDevice)
	pin["code"] = unknown
	p.changes(codeType, nil, pin).expect(t, nil)
	p.changes(sharedCodeType, nil, map[string]tftypes.Value{
		"name": text("Nanny"),
		"code": text("48156"),
		"device_ids": tftypes.NewValue(
			tftypes.Set{ElementType: tftypes.String},
			[]tftypes.Value{text(fakeDevice), unknown},
		),
	}).expect(t, []string{"E - PIN does not fit the lock"})
}

func TestPINOfACodeThatThePlanReplacesIsFree(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, nil))
	id := f.unmanaged(fakeCode{name: "Guest", code: "4815", managed: true})
	config := codeOf(fakeDevice, "code", "4815", "name", "Guest")
	f.plugin(t).changes(codeType, nil, config).expect(t, []string{
		`W - Lock has a managed access code "Guest" already`, "W - PIN is already on the lock",
	})
	p := f.plugin(t)
	state := maps.Clone(config)
	state["access_code_id"], state["status"], state["type"] = text(id), text("set"), text("ongoing")
	state["is_managed"] = tftypes.NewValue(tftypes.Bool, true)
	state["preferred_code_length"] = tftypes.NewValue(tftypes.Number, 4)
	replaced := p.changes(codeType, p.pack(object(p.stateType(codeType), state)), config)
	replaced.expect(t, []string{"W preferred_code_length Replacement without a refresh"})
	if len(replaced.plan.RequiresReplace) == 0 {
		t.Fatal("the code is not replaced")
	}
	config["name"] = text("Other")
	p.changes(codeType, nil, config).expect(t, nil)
}

func TestPlanWithoutARefresh_ChecksNoExistingCode(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, nil))
	w := newDirectory(t, map[string]string{"versions.tf": required, "main.tf": f.config(accessCode(`code = "4815"`))})
	w.expect(true, "apply", "-auto-approve")
	w.rewrite(f.config(accessCode(`code = "48156"`)))
	w.expect(false, "plan")
	asked := f.asked()
	w.expect(true, "plan", "-refresh=false")
	if f.asked() != asked {
		t.Errorf("%d requests", f.asked()-asked)
	}
}

// Two new codes of one plan count as each other's codes, until the apply begins.
func TestNewCodesOfOnePlanCountAsCodesOfTheLock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, map[string]any{"max_active_codes_supported": 2}))
	p := f.plugin(t)
	p.changes(codeType, nil, codeOf(fakeDevice, "code", "4815", "name", "Guest")).expect(t, nil)
	p.changes(codeType, nil, codeOf(fakeDevice, "code", "4815", "name", "Cook")).expect(
		t, []string{"W - PIN is already on the lock"}, `the new code "Guest" of this plan`,
	)
	p.changes(sharedCodeType, nil, map[string]tftypes.Value{
		"device_ids": texts(fakeDevice), "name": text("Nanny"), "code": text("4816"),
	}).expect(t, []string{"W device_ids Lock is full"})
	p.changes(codeType, nil, codeOf(lockB, "code", "4815", "name", "Guest")).expect(
		t, []string{"W device_id Device not found"},
	)
}

func TestTerraformShowsFaultsOfAPlanAtTheirLines(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.devices = append(f.devices, plainLock(fakeDevice, nil))
	w := newWorkspace(t, map[string]string{"main.tf": required + f.config(`
resource "deviceaccess_access_code" "pin" {
  device_id = "`+fakeDevice+`"
  code      = "48156"
}
resource "deviceaccess_access_code" "name" {
  device_id = "Front Door"
}
resource "deviceaccess_shared_access_code" "shared" {
  name       = "Nanny"
  device_ids = ["Front Door"]
}
`)})
	w.expect(false, "plan", "-no-color")
	expectSaid(t, "the plan", plainly(w.seen.String()),
		"Error: PIN does not fit the lock with deviceaccess_access_code.pin, on main.tf line 13, in resource "+
			`"deviceaccess_access_code" "pin":`,
		"Error: Name instead of an identifier with deviceaccess_access_code.name, on main.tf line 18, in resource "+
			`"deviceaccess_access_code" "name": 18: device_id = "Front Door"`,
		`22: device_ids = ["Front Door"]`,
	)
	if strings.Contains(w.seen.String(), "48156") {
		t.Error("the PIN is shown")
	}
	f.expectWrites(t, "after the plan")
}
