package zigbee2mqtt

import (
	"fmt"
	"slices"
	"testing"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// During an interview, or without a converter, Zigbee2MQTT lists a device without its definition.
func TestLockWithoutDefinitionIsNotRemoved(t *testing.T) {
	t.Parallel()
	const coordinator = `{"ieee_address":"0xc0","type":"Coordinator","friendly_name":"Coordinator","definition":null}`
	lock := lockListed("0xa", "front door", "V")
	for name, without := range map[string]string{
		"none":               `{"ieee_address":"0xa","type":"EndDevice","friendly_name":"front door","interviewing":true,"definition":null}`,
		"one made up for it": `{"ieee_address":"0xa","type":"EndDevice","friendly_name":"front door","definition":{"model":"X","vendor":"","exposes":[{"type":"numeric","property":"linkquality","access":1}]}}`,
	} {
		for before, lists := range map[string][][]string{
			"known before": {{coordinator, lock}, {coordinator, without}},
			"not known":    {{coordinator, without}},
		} {
			t.Run(name+", "+before, func(t *testing.T) {
				t.Parallel()
				a := told(t)
				a.session = &session{}
				a.receive("z/bridge/state", []byte(`{"state":"online"}`), true)
				for _, list := range lists {
					a.list(list...)
				}
				known := a.locks["0xa"]
				if (known != nil) != (before == "known before") {
					t.Errorf("there are %d locks", len(a.locks))
				}
				if _, err := a.find(t.Context(), "0xa"); err == nil || adapter.ClassOf(err) != adapter.Transient {
					t.Errorf("find: %v", err)
				}
				if known != nil && (known.vendor != "V" || !known.able.bolt) {
					t.Error("its properties are lost")
				}
				for _, ref := range []adapter.DeviceRef{"0xb", "0xc0"} {
					if _, err := a.find(t.Context(), ref); err == nil || adapter.ClassOf(err) != adapter.NotFound {
						t.Errorf("find %s, which is not a lock: %v", ref, err)
					}
				}
				a.hinted()
				a.list(coordinator, lock)
				if told := a.hinted(); !slices.ContainsFunc(told,
					func(e adapter.Event) bool { return e.Kind == adapter.CodesChanged && e.Device == "0xa" }) {
					t.Errorf("its return is not reported: %v", told)
				}
				if l, err := a.find(t.Context(), "0xa"); err != nil || known != nil && l != known {
					t.Errorf("with its definition: %v", err)
				}
				a.list(coordinator)
				if _, err := a.find(t.Context(), "0xa"); err == nil || adapter.ClassOf(err) != adapter.NotFound {
					t.Errorf("after its removal: %v", err)
				}
			})
		}
	}
}

// hinted returns the events since the last call.
func (a *Adapter) hinted() (all []adapter.Event) {
	for {
		select {
		case e := <-a.hints.Events():
			all = append(all, e)
		default:
			return all
		}
	}
}

// A new name in the meantime applies to the lock.
func TestLockRenamedWithoutDefinition(t *testing.T) {
	t.Parallel()
	a := told(t, lockListed("0xa", "front door", "V"))
	a.list(`{"ieee_address":"0xa","type":"EndDevice","friendly_name":"back door","definition":null}`)
	if a.named("back door") == nil || a.named("front door") != nil {
		t.Errorf("its name is %q", a.locks["0xa"].name)
	}
}

func TestStoredUndefinedDevicesAreLimited(t *testing.T) {
	t.Parallel()
	var list []string
	for n := range 3000 {
		list = append(
			list,
			fmt.Sprintf(`{"ieee_address":"0x%d","type":"EndDevice","friendly_name":"%d","definition":null}`, n, n),
		)
	}
	a := told(t, list...)
	if len(a.bridge.undefined) != maxUndefined || len(a.locks) != 0 {
		t.Errorf("%d are stored", len(a.bridge.undefined))
	}
}
