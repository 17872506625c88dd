package provider

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// NewServer returns a constructor of the plugin protocol server. Unlike the framework's server, it keeps nothing of a
// finished call.
func NewServer(version string) func() tfprotov6.ProviderServer {
	return func() tfprotov6.ProviderServer {
		provider := New(version)().(*deviceAccess)
		server := providerserver.NewProtocol6(provider)()
		return contextScrubber{
			ProviderServer:     server,
			ListResourceServer: server.(tfprotov6.ListResourceServer),
			walk:               provider.walk,
			schemas: sync.OnceValues(func() (*tfprotov6.GetProviderSchemaResponse, error) {
				return server.GetProviderSchema(context.Background(), &tfprotov6.GetProviderSchemaRequest{})
			}),
		}
	}
}

// contextScrubber empties the context of each call when the call ends. The framework keeps every context, with about
// 10 KB of loggers, until the process ends, to cancel them when Terraform stops the provider. A plan of 1,000
// resources has 4,000 calls. Calls that Terraform does not make per resource pass through unchanged.
type contextScrubber struct {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer

	schemas func() (*tfprotov6.GetProviderSchemaResponse, error)
	walk    *walk
}

func (s contextScrubber) ConfigureProvider(
	ctx context.Context,
	r *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	s.walk.begin()
	return s.ProviderServer.ConfigureProvider(ctx, r)
}

func (s contextScrubber) ValidateResourceConfig(
	ctx context.Context,
	r *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return callWithScrub(ctx, r, s.ProviderServer.ValidateResourceConfig)
}

func (s contextScrubber) UpgradeResourceState(
	ctx context.Context,
	r *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	s.walk.knowState(r.RawState)
	return callWithScrub(ctx, r, s.ProviderServer.UpgradeResourceState)
}

func (s contextScrubber) UpgradeResourceIdentity(
	ctx context.Context,
	r *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return callWithScrub(ctx, r, s.ProviderServer.UpgradeResourceIdentity)
}

func (s contextScrubber) ImportResourceState(
	ctx context.Context,
	r *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return callWithScrub(ctx, r, s.ProviderServer.ImportResourceState)
}

func (s contextScrubber) ReadResource(
	ctx context.Context,
	r *tfprotov6.ReadResourceRequest,
) (*tfprotov6.ReadResourceResponse, error) {
	s.walk.read.Store(true)
	return callWithScrub(ctx, r, s.ProviderServer.ReadResource)
}

func (s contextScrubber) PlanResourceChange(
	ctx context.Context,
	r *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	resp, err := callWithScrub(ctx, r, s.ProviderServer.PlanResourceChange)
	if err == nil {
		s.walk.checkReplacement(r, resp)
	}
	return resp, err
}

func (s contextScrubber) ApplyResourceChange(
	ctx context.Context,
	r *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	s.walk.applied.Store(true)
	return callWithScrub(ctx, r, s.ProviderServer.ApplyResourceChange)
}

func (s contextScrubber) ValidateDataResourceConfig(
	ctx context.Context,
	r *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return callWithScrub(ctx, r, s.ProviderServer.ValidateDataResourceConfig)
}

func (s contextScrubber) ReadDataSource(
	ctx context.Context,
	r *tfprotov6.ReadDataSourceRequest,
) (*tfprotov6.ReadDataSourceResponse, error) {
	return callWithScrub(ctx, r, s.ProviderServer.ReadDataSource)
}

// callWithScrub runs a call with a context that is empty afterwards.
func callWithScrub[Request, Response any](
	ctx context.Context,
	request Request,
	call func(context.Context, Request) (Response, error),
) (Response, error) {
	b := &scrubbedContext{}
	b.now.Store(&callContext{ctx})
	defer b.now.Store(endedContext)
	return call(b, request)
}

// scrubbedContext is the context of a call while the call runs, and a canceled context afterwards.
type scrubbedContext struct{ now atomic.Pointer[callContext] }

type callContext struct{ context.Context }

var endedContext = func() *callContext {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &callContext{ctx}
}()

func (b *scrubbedContext) Deadline() (time.Time, bool) { return b.now.Load().Deadline() }
func (b *scrubbedContext) Done() <-chan struct{}       { return b.now.Load().Done() }
func (b *scrubbedContext) Err() error                  { return b.now.Load().Err() }
func (b *scrubbedContext) Value(key any) any           { return b.now.Load().Value(key) }
