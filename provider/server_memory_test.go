package provider

import (
	"context"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

func TestNothingOfACallIsKeptWhenItIsOver(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	p := f.plugin(t)
	type baggage *[1 << 10]byte // more than the collector takes together with others
	call := func() weak.Pointer[[1 << 10]byte] {
		carried := new([1 << 10]byte)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), baggage(nil), carried))
		defer cancel() // as the plugin protocol does when a call is over
		answer, err := p.server.ImportResourceState(
			ctx,
			&tfprotov6.ImportResourceStateRequest{TypeName: "deviceaccess_webhook", ID: "w1"},
		)
		if err != nil {
			t.Fatal(err)
		}
		p.allow(answer.Diagnostics)
		imported := answer.ImportedResources[0]
		read, err := p.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
			TypeName:        imported.TypeName,
			CurrentState:    imported.State,
			Private:         imported.Private,
			CurrentIdentity: imported.Identity,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.allow(read.Diagnostics)
		return weak.Make(carried)
	}
	kept := call()
	runtime.GC()
	runtime.GC() // the first one only queues finalizers
	if kept.Value() != nil {
		t.Error("the context of a call is kept")
	}
	runtime.KeepAlive(p)
}

func TestStoppingCancelsTheCallsThatAreUnderWay(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	f.webhooks["w1"] = &fakeWebhook{url: "https://example.com/a", eventTypes: []string{"*"}}
	p := f.plugin(t)
	answer, err := p.server.ImportResourceState(
		t.Context(),
		&tfprotov6.ImportResourceStateRequest{TypeName: "deviceaccess_webhook", ID: "w1"},
	)
	if err != nil {
		t.Fatal(err)
	}
	p.allow(answer.Diagnostics)
	imported := answer.ImportedResources[0]
	came, release := f.hold("/webhooks/list")
	defer release()
	ended := make(chan []*tfprotov6.Diagnostic)
	go func() {
		read, err := p.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{
			TypeName:        imported.TypeName,
			CurrentState:    imported.State,
			Private:         imported.Private,
			CurrentIdentity: imported.Identity,
		})
		if err != nil {
			t.Error(err)
		}
		ended <- read.Diagnostics
	}()
	<-came
	if _, err := p.server.StopProvider(t.Context(), &tfprotov6.StopProviderRequest{}); err != nil {
		t.Fatal(err)
	}
	if diagnostics := <-ended; len(diagnostics) != 1 {
		t.Errorf("the read ends with %d diagnostics", len(diagnostics))
	}
}

// The wrapper passes on whatever else the framework's server can do, such as actions and functions.
func TestWrapperHasEveryMethodOfTheServer(t *testing.T) {
	t.Parallel()
	of := func(server tfprotov6.ProviderServer) (names []string) {
		for kind := reflect.TypeOf(server); len(names) < kind.NumMethod(); {
			names = append(names, kind.Method(len(names)).Name)
		}
		return names
	}
	stateStores := reflect.TypeFor[tfprotov6.StateStoreServer]() // the provider has none
	wrapped := of(NewServer("test")())
	for _, name := range of(providerserver.NewProtocol6(New("test")())()) {
		if _, unused := stateStores.MethodByName(name); !unused && !slices.Contains(wrapped, name) {
			t.Errorf("the wrapper lacks %s", name)
		}
	}
	if _, ok := NewServer("test")().(tfprotov6.ActionServer); !ok {
		t.Error("the wrapper does not offer actions")
	}
}
