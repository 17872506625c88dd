package provider

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

const alreadyThere = "Warning: Lock has a managed access code"

// lostCode puts a managed code on the first lock that is in no state.
func (f *fake) lostCode(name string) (id string) {
	return f.unmanaged(fakeCode{name: name, code: longPIN, managed: true})
}

func TestLostCode_IsNamedWithItsImport(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := required + f.config(accessCode(`name = "Guest"`))
	w := newDirectory(t, map[string]string{"main.tf": config})
	w.expect(true, "apply", "-auto-approve")
	id, _ := f.only()
	w.expect(true, "state", "rm", front) // as if that apply had been killed
	imported := fmt.Sprintf("import { to = deviceaccess_access_code.NAME id = \"%s/%s\" }", lockA, id)
	expectSaid(t, "the next plan", w.plain("plan"), alreadyThere+` "Guest" already`, `the lock "Front Door"`, imported)

	w.rewrite(config + fmt.Sprintf("import {\n  to = %s\n  id = \"%s/%s\"\n}\n", front, lockA, id))
	if said := w.plain("apply", "-auto-approve"); strings.Contains(said, alreadyThere) {
		t.Errorf("the import is warned of:\n%s", said)
	}
	f.expectWrites(t, "in the end", "/access_codes/create")
}

func TestLostSharedCode_IsNamedWithItsImport(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := required + f.config(codeSet("", lockA, lockB, lockC))
	w := newDirectory(t, map[string]string{"main.tf": config})
	w.expect(true, "apply", "-auto-approve")
	idA, _ := f.on(lockA)
	idB, _ := f.on(lockB)
	idC, code := f.on(lockC)
	w.expect(true, "state", "rm", nanny)              // as if that apply had been killed
	f.do(func() { delete(f.codes, idC) })             // before it created this code
	id := lockA + "/" + idA + "," + lockB + "/" + idB // which an import takes in any order
	said := w.plain("plan")
	expectSaid(
		t,
		"the next plan",
		said,
		alreadyThere+` "Nanny" already`,
		`the lock "Front Door"`,
		`the lock "Back Door"`,
		`import { to = deviceaccess_shared_access_code.NAME id = "`+id+`" }`,
	)
	if strings.Count(said, alreadyThere) != 1 || strings.Contains(said, "Garage") {
		t.Errorf("too much is said:\n%s", said)
	}
	if pin, _ := code.code.(string); strings.Contains(said, pin) {
		t.Error("the PIN is shown")
	}

	w.rewrite(config + "import {\n  to = " + nanny + "\n  id = \"" + id + "\"\n}\n")
	if said := w.plain("apply", "-auto-approve"); strings.Contains(said, alreadyThere) {
		t.Errorf("the import is warned of:\n%s", said)
	}
	if n := f.count("/access_codes/create"); n != 4 {
		t.Errorf("%d codes were created", n)
	}
}

func TestLostCode_IsNotSaidOfOtherCodes(t *testing.T) {
	t.Parallel()
	second := strings.Replace(accessCode(`name = "Guest"`), "front", "second", 1)
	for name, c := range map[string]struct {
		before, config string
		prepare        func(f *fake)
	}{
		"that are in the state": {
			before: accessCode(`name = "Guest"`),
			config: accessCode(`name = "Guest"`) + second,
		},
		"that are in a shared code": {
			before: codeSet("", lockA),
			config: codeSet("", lockA) + accessCode(`name = "Nanny"`),
		},
		"that a new shared code has otherwise": {
			config:  codeSet(`code = "904716590100"`, lockA, lockB),
			prepare: func(f *fake) { f.lostCode("Nanny") },
		},
		"of another name": {config: second, prepare: func(f *fake) { f.lostCode("Cook") }},
		"that are being deleted": {
			config:  second,
			prepare: func(f *fake) { f.codes[f.lostCode("Guest")].status = "removing" },
		},
		"of another PIN": {
			config:  accessCode("name = \"Guest\"\n  code = \"904716590100\""),
			prepare: func(f *fake) { f.lostCode("Guest") },
		},
		"of another time frame": {
			config:  accessCode("name = \"Guest\"\n" + frame(time.Hour, time.Hour)),
			prepare: func(f *fake) { f.lostCode("Guest") },
		},
		"on a lock that is unlisted": {
			config: second,
			prepare: func(f *fake) {
				f.lostCode("Guest")
				f.lacks = []string{"/access_codes/list"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFakeLocks(t)
			w := newDirectory(t, map[string]string{"main.tf": required + f.config(c.before)})
			w.expect(true, "apply", "-auto-approve")
			if c.prepare != nil {
				c.prepare(f)
			}
			w.rewrite(required + f.config(c.config))
			for _, args := range [][]string{{"plan"}, {"plan", "-refresh=false"}} {
				if said := w.plain(args...); strings.Contains(said, alreadyThere) {
					t.Errorf("terraform %q says\n%s", args, said)
				}
			}
		})
	}
}

// An apply loads what it changes, and reads nothing. A plan reads what it has loaded.
func TestLostCode_IsSaidByPlansOnly(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	id := f.lostCode("Guest")
	p := f.plugin(t)
	load := func() {
		_, err := p.server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
			TypeName: codeType, RawState: &tfprotov6.RawState{JSON: []byte(`{}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want int) {
		t.Helper()
		if n := len(p.plansCreation(lockA, "Guest").Diagnostics); n != want {
			t.Errorf("%s: %d warnings", when, n)
		}
	}
	load()
	expect("nothing is read", 0)
	other := f.unmanaged(fakeCode{name: "Cook", code: longPIN, managed: true})
	p.imported(codeType, lockA+"/"+other)
	expect("another code is read", 1)
	f.do(func() { delete(f.codes, id) })
}

// plansCreation is the plan of a new code.
func (p *plugin) plansCreation(device, name string) *tfprotov6.PlanResourceChangeResponse {
	p.t.Helper()
	of := p.stateType(codeType)
	config := object(of, map[string]tftypes.Value{"device_id": text(device), "name": text(name)})
	answer, err := p.server.PlanResourceChange(p.t.Context(), &tfprotov6.PlanResourceChangeRequest{
		TypeName:         codeType,
		Config:           p.pack(config),
		ProposedNewState: p.pack(config),
		PriorState:       p.pack(tftypes.NewValue(of, nil)),
	})
	if err != nil {
		p.t.Error(err)
		return &tfprotov6.PlanResourceChangeResponse{}
	}
	return answer
}

func TestLostCodes_AreNamedUpToALimitWithAListPerLock(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	stocked, locks := f.stock(20, 25, true), map[string]bool{}
	for _, lock := range stocked {
		if !locks[lock] { // the checks list the devices, which gives their names
			locks[lock] = true
			f.devices = append(f.devices, plainLock(lock, nil))
		}
	}
	p := f.plugin(t)
	warnings := make(chan string, 1000)
	each(stocked, func(id, device string) {
		for _, d := range p.plansCreation(device, f.codes[id].name.(string)).Diagnostics {
			warnings <- d.Summary
		}
		p.plansCreation(device, "New "+uuid.NewString())
	})
	close(warnings)
	if n := len(warnings); n != namedCodes+1 {
		t.Errorf("%d warnings", n)
	}
	if asked := f.asked(); asked > 45 {
		t.Errorf("%d requests", asked)
	}
}

// The apply of a rotation does not read the code that it replaces: Terraform has deposed it.
func TestTerraformRotation_NamesNoLostCode(t *testing.T) {
	t.Parallel()
	f := startFakeLocks(t)
	config := func(tenant string) string {
		keepers := "keepers = { tenant = \"" + tenant + "\" }\n  lifecycle {\n    create_before_destroy = true\n  }"
		return required + f.config(accessCode(`name = "Guest"`+"\n  "+keepers)+codeSet(keepers, lockB))
	}
	w := newWorkspace(t, map[string]string{"main.tf": config("Ada")})
	w.expect(true, "apply", "-auto-approve")
	w.write("main.tf", config("Grace"))
	for _, args := range [][]string{{"plan", "-out=plan"}, {"apply", "plan"}} {
		if said := w.plain(args...); strings.Contains(said, alreadyThere) {
			t.Errorf("terraform %q says\n%s", args, said)
		}
	}
}
