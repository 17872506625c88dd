package provider

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// unreachable is a server that no connection can be made to in time.
type unreachable struct{ err error }

func (u unreachable) RoundTrip(*http.Request) (*http.Response, error) { return nil, u.err }

// Go tells the end of its own time to connect as it tells that of a context.
func TestServerThatCannotBeReachedKeepsTryingNothing(t *testing.T) {
	t.Parallel()
	_, late := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:9")
	if !errors.Is(late, context.DeadlineExceeded) {
		t.Fatalf("Go tells it otherwise: %v", late)
	}
	const id = "aaaaaaaa-2222-4222-8222-222222222222"
	state := &accessCodeModel{
		AccessCodeID: types.StringValue(id),
		DeviceID:     types.StringValue(fakeDevice),
		Name:         types.StringValue("Cleaner"),
	}
	plan := *state
	plan.Name = types.StringValue("Cook")
	for name, act := range map[string]func(context.Context, *api.Client) (string, error){
		"a change": func(ctx context.Context, client *api.Client) (string, error) {
			_, err := changePlanned(ctx, client, &plan, state, true)
			return changeAdvice(err), err
		},
		"a conversion": func(ctx context.Context, client *api.Client) (string, error) {
			_, err := convertPlanned(ctx, client, &plan, state)
			return conversionAdvice(err), err
		},
		"a deletion": func(ctx context.Context, client *api.Client) (string, error) {
			err := deleteCode(ctx, client, fakeDevice, id)
			return deletionAdvice(err), err
		},
	} {
		for when, within := range map[string]time.Duration{"in its own time": time.Hour, "before the time is up": time.Second} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					server := http.RoundTripper(unreachable{late})
					if within < time.Minute {
						server = untilTheEnd{late}
					}
					client, err := api.New(
						api.Config{Endpoint: "http://server.example", Credential: fakeKey, Transport: server},
					)
					if err != nil {
						t.Fatal(err)
					}
					advice, err := act(ctx, client)
					if err == nil || keepsTrying(err) || !strings.Contains(advice, "Check that the server is running") {
						t.Errorf("%v: %s", err, advice)
					}
				})
			})
		}
	}
}

// untilTheEnd is a server that no connection can be made to before the context ends.
type untilTheEnd struct{ err error }

func (u untilTheEnd) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, u.err
}
