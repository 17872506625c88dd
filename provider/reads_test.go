package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/app/apptest"
)

// parallelism is how much Terraform does at once.
const parallelism = 10

// stock puts codes on locks, the same number on each, and answers code → lock.
func (f *fake) stock(locks, codes int, managed bool) map[string]string {
	stocked := map[string]string{}
	for range locks {
		device := uuid.NewString()
		for i := range codes {
			id := f.unmanaged(fakeCode{name: fmt.Sprintf("Guest %d", i), code: "2468", managed: managed})
			f.codes[id].device = device
			stocked[id] = device
		}
	}
	return stocked
}

// asked is how many requests were made.
func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// each does something for all codes as Terraform would, some at once.
func each(stocked map[string]string, do func(id, device string)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, parallelism)
	for id, device := range stocked {
		slots <- struct{}{}
		all.Go(func() {
			do(id, device)
			<-slots
		})
	}
	all.Wait()
}

// refreshes reads a code as terraform plan does.
func (p *plugin) refreshes(id, device string) map[string]string {
	state := object(
		p.stateType(codeType),
		map[string]tftypes.Value{"access_code_id": text(id), "device_id": text(device), "type": text("ongoing")},
	)
	return p.state(
		codeType,
		p.reads(
			&tfprotov6.ReadResourceRequest{
				TypeName:     codeType,
				CurrentState: p.pack(state),
				Private:      seenIn(fakeWorkspace),
			},
		).NewState,
	)
}

// seenIn is the private state of what was seen in a workspace, as the framework writes it.
func seenIn(workspace string) []byte {
	private, _ := json.Marshal(map[string][]byte{workspaceKey: fmt.Appendf(nil, "%q", workspace)}) // always encodes
	return private
}

func TestThousandCodesAreRefreshedByAListPerLock(t *testing.T) {
	t.Parallel()
	for locks, codes := range map[int]int{10: 100, 100: 10} { // servers list by lock only, so that few codes on a lock cost more each
		t.Run(fmt.Sprintf("on %d locks", locks), func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			stocked := f.stock(locks, codes, true)
			p := f.plugin(t)
			each(stocked, func(id, device string) {
				if state := p.refreshes(id, device); state["access_code_id"] != id || state["device_id"] != device {
					t.Errorf("the code %s of %s is read as %v", id, device, state)
				}
			})
			if asked := f.asked(); asked > locks {
				t.Errorf("%d requests", asked)
			}
		})
	}
}

func TestAdoptionOfCodesIsPlannedByAListPerLock(t *testing.T) {
	t.Parallel()
	forms := map[string]func(p *plugin, id, device string) *tfprotov6.ImportResourceStateRequest{
		"device and code": func(_ *plugin, id, device string) *tfprotov6.ImportResourceStateRequest {
			return &tfprotov6.ImportResourceStateRequest{TypeName: codeType, ID: device + "/" + id}
		},
		"identity": func(p *plugin, id, device string) *tfprotov6.ImportResourceStateRequest {
			return &tfprotov6.ImportResourceStateRequest{
				TypeName: codeType,
				Identity: p.identity(codeType, map[string]string{"access_code_id": id, "device_id": device}),
			}
		},
	}
	servers := map[string]struct {
		change func(*fake)
		most   int
	}{
		"this server":                  {func(*fake) {}, 20},
		"one without the managed list": {func(f *fake) { f.lacks = []string{"/access_codes/list"} }, 20},
		"one that heeds no device_id":  {func(f *fake) { f.listsAllDevices = true }, 30},
		"one without pagination":       {func(f *fake) { f.noPagination = true }, 20},
		"one with shorter pages":       {func(f *fake) { f.pageSize = 20 }, 30},
	}
	for form, request := range forms {
		for server, c := range servers {
			t.Run(form+", "+server, func(t *testing.T) {
				t.Parallel()
				f := startFake(t)
				c.change(f)
				stocked := f.stock(10, 30, false)
				p := f.plugin(t)
				each(stocked, func(id, device string) {
					if state := p.state(
						codeType,
						p.imports(request(p, id, device)).NewState,
					); state["access_code_id"] != id ||
						state["code"] != "2468" {
						t.Errorf("the code %s is read as %v", id, state)
					}
				})
				if asked := f.asked(); asked > c.most {
					t.Errorf("%d requests", asked)
				}
				f.expectWrites(t, "in the end")
			})
		}
	}
}

func TestTerraformPlansTheAdoptionOfCodesWithAListPerLock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	config := &strings.Builder{}
	for id, device := range f.stock(3, 20, false) {
		fmt.Fprintf(config, "resource \"deviceaccess_access_code\" \"code_%s\" {\n  device_id = %q\n}\n", id, device)
		fmt.Fprintf(config, "import {\n  to = deviceaccess_access_code.code_%s\n  id = %q\n}\n", id, device+"/"+id)
	}
	w := newWorkspace(t, map[string]string{"main.tf": required + f.config(config.String())})
	if plan := w.read(
		"plan",
		"-no-color",
	); !strings.Contains(
		plan,
		"60 to import, 0 to add, 60 to change, 0 to destroy",
	) {
		t.Errorf("the plan says\n%s", plan[max(0, len(plan)-1000):])
	}
	if asked := f.asked(); asked > 7 { // two lists per lock, and the devices
		t.Errorf("%d requests", asked)
	}
	f.expectWrites(t, "after the plan")
}

func TestCodeThatIsOnNoListIsAskedForBeforeItIsGone(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Nanny", code: "2468", managed: true})
	empty := func() {
		f.then("/access_codes/list", answer(map[string]any{"access_codes": []any{}}))
		f.then("/access_codes/unmanaged/list", answer(map[string]any{"access_codes": []any{}}))
	}
	empty()
	if state := f.plugin(t).refreshes(id, fakeDevice); state["name"] != "Nanny" {
		t.Errorf("it is read as %v", state)
	}
	clear(f.codes)
	empty()
	if state := f.plugin(t).refreshes(id, fakeDevice); state != nil {
		t.Errorf("it is read as %v", state)
	}
}

func TestReadAfterAConversionByImportIsFresh(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	id := f.unmanaged(fakeCode{name: "Plumber", code: "2468"})
	p := f.plugin(t)
	p.refreshes(id, fakeDevice) // has the unmanaged list in memory
	read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: codeType, ID: id})
	value, err := read.NewState.Unmarshal(p.stateType(codeType))
	if err != nil {
		t.Fatal(err)
	}
	var attributes map[string]tftypes.Value
	var managed bool
	if err := value.As(&attributes); err != nil {
		t.Fatal(err)
	}
	if err := attributes["is_managed"].As(&managed); err != nil || !managed {
		t.Errorf("is_managed = %v, %v", managed, err)
	}
}

func TestWebhooksAreRefreshedByOneRequest(t *testing.T) {
	t.Parallel()
	for name, noLists := range map[string]bool{"from their list": false, "one by one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			if noLists {
				f.lacks = []string{"/webhooks/list"}
			}
			hooks := map[string]string{}
			for range 200 {
				id := uuid.NewString()
				f.webhooks[id] = &fakeWebhook{url: "https://example.com/" + id, eventTypes: []string{"*"}}
				hooks[id] = f.webhooks[id].url
			}
			p := f.plugin(t)
			each(hooks, func(id, url string) {
				state := object(
					p.stateType(webhookType),
					map[string]tftypes.Value{"webhook_id": text(id), "url": text(url)},
				)
				read := p.reads(&tfprotov6.ReadResourceRequest{TypeName: webhookType, CurrentState: p.pack(state)})
				if state := p.state(webhookType, read.NewState); state["url"] != url {
					t.Errorf("the webhook %s is read as %v", id, state)
				}
			})
			want := 1
			if noLists {
				want = 201
			}
			if asked := f.count("/webhooks/list") + f.count("/webhooks/get"); asked != want {
				t.Errorf("%d requests, want %d", asked, want)
			}
		})
	}
}

func TestImportedWebhookGetsItsSecretAlsoWhereTheListHasNone(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	f.then(
		"/webhooks/list",
		answer(
			map[string]any{
				"webhooks": []any{
					map[string]any{"webhook_id": "w1", "url": "https://example.com/a", "event_types": []string{"*"}},
				},
			},
		),
	)
	p := f.plugin(t)
	read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: webhookType, ID: "w1"})
	if p.state(webhookType, read.NewState)["secret"] != fakeSecret {
		t.Error("the secret was not read")
	}
}

func TestServerCodesAreRefreshedByAListPerLock(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august", "yale"))
	p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
	stocked := map[string]string{}
	for _, profile := range []string{"august", "yale"} {
		for i := range 8 {
			var made api.AccessCodeCreatedResponse
			srv.Post(
				t,
				"/access_codes/create",
				map[string]any{"device_id": srv.Device(t, profile), "name": fmt.Sprintf("Guest %d", i)},
				&made,
			)
			stocked[made.AccessCode.AccessCodeID] = srv.Device(t, profile)
		}
	}
	gets, lists := srv.Count("/access_codes/get"), srv.Count("/access_codes/list")
	each(stocked, func(id, device string) {
		if state := p.refreshes(id, device); state["device_id"] != device || state["access_code_id"] != id {
			t.Errorf("the code %s of %s is read as %v", id, device, state)
		}
	})
	if got := srv.Count("/access_codes/list") - lists; got != 2 {
		t.Errorf("%d lists", got)
	}
	if got := srv.Count("/access_codes/get") - gets; got != 0 {
		t.Errorf("%d gets", got)
	}
}

// people creates user identities, and a user of an access system for each.
func people(t *testing.T, srv *apptest.Server, n int) {
	t.Helper()
	system := srv.AccessSystem(t)
	for i := range n {
		var identity api.UserIdentityResponse
		srv.Post(t, "/user_identities/create", map[string]any{"full_name": fmt.Sprint("Person ", i)}, &identity)
		srv.Post(t, "/acs/users/create", map[string]any{
			"acs_system_id":    system.ID,
			"full_name":        fmt.Sprint("Person ", i),
			"user_identity_id": identity.UserIdentity.UserIdentityID,
		}, nil)
	}
}

// What is listed can be imported by its identity, and is refreshed by lists.
func TestServerDevicesAndPeopleAreListedImportedAndRefreshedByLists(t *testing.T) {
	t.Parallel()
	srv := apptest.Shared(t, apptest.WithProfiles("august"), apptest.WithLocks(4))
	people(t, srv, 4)
	for typeName, kind := range map[string]struct{ id, get, list string }{
		deviceType:   {"device_id", "/devices/get", "/devices/list"},
		acsUserType:  {"acs_user_id", "/acs/users/get", "/acs/users/list"},
		identityType: {"user_identity_id", "/user_identities/get", "/user_identities/list"},
	} {
		p := startPlugin(t, map[string]string{"endpoint": srv.URL, "api_key": srv.APIKey})
		results := p.lists(&tfprotov6.ListResourceRequest{TypeName: typeName, IncludeResource: true})
		if len(results) != 4 {
			t.Errorf("%s: %d are listed", typeName, len(results))
		}
		lists, gets := srv.Count(kind.list), srv.Count(kind.get)
		for _, result := range results {
			p.allow(result.Diagnostics)
			listed := p.state(typeName, result.Resource)
			if result.DisplayName == "" || listed[kind.id] == "" {
				t.Errorf("%s: %q is listed as %v", typeName, result.DisplayName, listed)
			}
			read := p.imports(&tfprotov6.ImportResourceStateRequest{TypeName: typeName, Identity: result.Identity})
			expectNames(t, typeName, p.state(typeName, read.NewState), listed)
			expectNames(t, typeName, p.names(typeName, read.NewIdentity), map[string]string{kind.id: listed[kind.id]})
			p.reads(&tfprotov6.ReadResourceRequest{
				TypeName:        typeName,
				CurrentState:    read.NewState,
				CurrentIdentity: read.NewIdentity,
				Private:         read.Private,
			})
		}
		wantGets := 0
		if typeName == acsUserType {
			wantGets = len(results) // an import does not know the access system, and so not the list
		}
		if l, g := srv.Count(kind.list)-lists, srv.Count(kind.get)-gets; l != 1 || g != wantGets {
			t.Errorf("%s: read by %d lists and %d single reads", typeName, l, g)
		}
	}
}
