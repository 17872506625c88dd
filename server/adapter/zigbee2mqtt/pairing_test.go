package zigbee2mqtt

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// strange returns an adapter without a connection that receives messages, and the checked gateways.
func strange(t *testing.T, verdict error) (a *Adapter, met chan string) {
	t.Helper()
	met = make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	a = &Adapter{config: Config{Topic: "z", CheckGateway: func(_ context.Context, gateway string) error {
		met <- gateway
		return verdict
	}}, running: ctx, changed: make(chan struct{})}
	a.bridge.reset()
	t.Cleanup(func() {
		cancel()
		a.gatewayChecks.Wait()
	})
	return a, met
}

func (a *Adapter) absent() error {
	a.gatewayChecks.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if absence := a.gatewayUnchecked(); absence != nil {
		return absence.err
	}
	return nil
}

// The network is not used before its identity is known over this connection, in any order of the messages.
func TestGatewayIsCheckedFirst(t *testing.T) {
	t.Parallel()
	const info, devices = `{"coordinator":{"ieee_address":"0x00124B0014D9A1F0"}}`,
		`[{"ieee_address":"0x00124b0014d9a1f0","type":"Coordinator"}]`
	for name, told := range map[string][][2]string{
		"the settings first":         {{"bridge/info", info}, {"bridge/devices", devices}},
		"the devices first":          {{"bridge/devices", devices}, {"bridge/info", info}},
		"an old one, settings first": {{"bridge/info", `{}`}, {"bridge/devices", devices}},
		"an old one, devices first":  {{"bridge/devices", devices}, {"bridge/info", `{}`}},
		"one with its own identity":  {{"bridge/info", info}},
	} {
		a, met := strange(t, nil)
		if a.absent() == nil {
			t.Errorf("%s: it is used before its identity is known", name)
		}
		for _, m := range told {
			a.receive("z/"+m[0], []byte(m[1]), true)
		}
		if err := a.absent(); err != nil || len(met) != 1 {
			t.Errorf("%s: %v, %d checks", name, err, len(met))
		}
		if got := <-met; got != "0x00124b0014d9a1f0" {
			t.Errorf("%s: it is %q", name, got)
		}
		a.bridge.reset() // after a reconnection, the same address may lead to another network
		if a.absent() == nil {
			t.Errorf("%s: it is used again before its identity is known", name)
		}
		a.receive("z/bridge/devices", []byte(`[]`), true)
		if a.absent() == nil {
			t.Errorf("%s: the earlier identity counts", name)
		}
		a.receive("z/bridge/info", []byte(`{"coordinator":{"ieee_address":"0x00124b0014d9a1f1"}}`), true)
		if err := a.absent(); err != nil || <-met != "0x00124b0014d9a1f1" {
			t.Errorf("%s: another one: %v", name, err)
		}
	}
}

func TestRejectedGatewayIsNotUsed(t *testing.T) {
	t.Parallel()
	refused := errors.New("it is another's")
	a, met := strange(t, refused)
	a.receive("z/bridge/info", []byte(`{"coordinator":{"ieee_address":"0x1"}}`), true)
	if err := a.absent(); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	a.receive("z/bridge/info", []byte(`{"coordinator":{"ieee_address":"0x1"}}`), true)
	if err := a.absent(); !errors.Is(err, refused) || len(met) != 1 {
		t.Errorf("repeated: %v, %d checks", err, len(met))
	}
	a.repeatGatewayCheck(a.bridge.gatewayCheck) // as after gatewayCheckInterval
	if err := a.absent(); !errors.Is(err, refused) || len(met) != 2 {
		t.Errorf("later: %v, %d checks", err, len(met))
	}
}

// A broker may change the identity arbitrarily often. Each check runs a transaction.
func TestGatewayChecksAreSequential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, met := strange(t, nil)
		for n := range 1000 {
			a.receive("z/bridge/info", fmt.Appendf(nil, `{"coordinator":{"ieee_address":"0x%d"}}`, n), true)
		}
		synctest.Wait()
		if len(met) != 1 {
			t.Errorf("%d checks", len(met))
		}
		if a.absent() == nil {
			t.Error("it is used before its current network was checked")
		}
		time.Sleep(gatewayCheckInterval)
		synctest.Wait()
		<-met
		if last := <-met; last != "0x999" || a.absent() != nil {
			t.Errorf("checked %s, %v", last, a.absent())
		}
	})
}
