package rest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/access"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/acs"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// handlers map requests to operations of the domain, and results to responses. There is one file per resource
// group.
type handlers struct {
	access      *access.Services
	acs         *acs.Service
	simulator   Simulator
	tester      WebhookTester
	vendors     []adapter.Vendor
	connectable []adapter.Vendor
	pager       pager
	logger      *slog.Logger
	waits       waits
	health      func(context.Context) Health // may be nil
}

var _ openapi.StrictServerInterface = (*handlers)(nil)

// recheckAccess returns an error if the caller has lost access since the request started.
func (h *handlers) recheckAccess(ctx context.Context) error {
	return h.access.Auth.RecheckScope(ctx, principal(ctx))
}

// each maps a list. The result is never nil, so that it becomes [] in JSON.
func each[A, B any](list []A, to func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = to(a)
	}
	return out
}

// lastPosition returns the position of the last row of a page.
func lastPosition[A any](rows []A, at func(A) (time.Time, uuid.UUID)) (last domain.Position) {
	if len(rows) > 0 {
		last.At, last.ID = at(rows[len(rows)-1])
	}
	return last
}

// intersect combines a value and a list of values into one condition; nil is no condition. Identifiers ignore case.
func intersect(one string, many *[]string) *[]string {
	switch {
	case one == "":
		return many
	case many == nil || slices.ContainsFunc(*many, func(other string) bool { return strings.EqualFold(other, one) }):
		return &[]string{one}
	default:
		return &[]string{}
	}
}

// valuesOf dereferences an optional list: nil is no condition, and an empty list matches nothing.
func valuesOf(list *[]string) []string {
	switch {
	case list == nil:
		return nil
	case *list == nil:
		return []string{}
	default:
		return *list
	}
}

// identifier returns an identifier as a string, or nil if there is none.
func identifier(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	return new(id.String())
}

// optional returns nil for an empty string.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func toErrors(problems []domain.Problem) []api.Problem {
	return each(problems, func(p domain.Problem) api.Problem {
		out := toProblem(p)
		out.ErrorCode = p.Code
		out.IsAccessCodeError = p.Scope == domain.OfCode
		if p.Scope != domain.OfCode {
			ofDevice := p.Scope == domain.OfDevice
			out.IsDeviceError = &ofDevice
		}
		out.IsConnectedAccountError = p.Scope == domain.OfAccount
		return out
	})
}

func toWarnings(problems []domain.Problem) []api.Problem {
	return each(problems, func(p domain.Problem) api.Problem {
		out := toProblem(p)
		out.WarningCode = p.Code
		return out
	})
}

func toProblem(p domain.Problem) api.Problem {
	out := api.Problem{Message: p.Message, CreatedAt: p.At, ChangeType: p.Change}
	switch {
	case p.Other == uuid.Nil:
	case p.Managed:
		out.ManagedAccessCodeID = p.Other.String()
	default:
		out.UnmanagedAccessCodeID = p.Other.String()
	}
	return out
}
