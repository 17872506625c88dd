package provider

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// NewServer returns a constructor of the plugin protocol server. Unlike the framework's server, it keeps nothing of a
// finished call.
func NewServer(version string) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer {
		server := providerserver.NewProtocol6(New(version)())()
		return forgetful{server, server.(tfprotov6.ListResourceServer)}
	}
}

// contextScrubber empties the context of each call when the call ends. The framework keeps every context, with about
// 10 KB of loggers, until the process ends, to cancel them when Terraform stops the provider. A plan of 1,000
// resources has 4,000 calls. Calls that Terraform does not make per resource pass through unchanged.
type forgetful struct {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
}

func (s forgetful) ValidateResourceConfig(
	ctx context.Context,
	r *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ValidateResourceConfig)
}

func (s forgetful) UpgradeResourceState(
	ctx context.Context,
	r *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	return briefly(ctx, r, s.ProviderServer.UpgradeResourceState)
}

func (s forgetful) UpgradeResourceIdentity(
	ctx context.Context,
	r *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return briefly(ctx, r, s.ProviderServer.UpgradeResourceIdentity)
}

func (s forgetful) ImportResourceState(
	ctx context.Context,
	r *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ImportResourceState)
}

func (s forgetful) ReadResource(
	ctx context.Context,
	r *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ReadResource)
}

func (s forgetful) PlanResourceChange(
	ctx context.Context,
	r *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return briefly(ctx, r, s.ProviderServer.PlanResourceChange)
}

func (s forgetful) ApplyResourceChange(
	ctx context.Context,
	r *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ApplyResourceChange)
}

func (s forgetful) ValidateDataResourceConfig(
	ctx context.Context,
	r *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ValidateDataResourceConfig)
}

func (s forgetful) ReadDataSource(
	ctx context.Context,
	r *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	return briefly(ctx, r, s.ProviderServer.ReadDataSource)
}

// callWithScrub runs a call with a context that is empty afterwards.
func briefly[Request, Response any](
	ctx context.Context,
	request Request,
	call func(context.Context, Request) (Response, error),
) (Response, error) {
	b := &brief{}
	b.now.Store(&during{ctx})
	defer b.now.Store(afterwards)
	return call(b, request)
}

// scrubbedContext is the context of a call while the call runs, and a canceled context afterwards.
type brief struct{ now atomic.Pointer[during] }

type during struct{ context.Context }

var afterwards = func() *during {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &during{ctx}
}()

func (b *brief) Deadline() (time.Time, bool) { return b.now.Load().Deadline() }
func (b *brief) Done() <-chan struct{}       { return b.now.Load().Done() }
func (b *brief) Err() error                  { return b.now.Load().Err() }
func (b *brief) Value(key any) any           { return b.now.Load().Value(key) }
