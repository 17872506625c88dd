package rest

import (
	"context"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// Health is the health of the server by part. It is public, so it must not contain private data.
type Health struct {
	// At is when the health was evaluated. It is zero if the database has not responded.
	At time.Time
	// Parts has the health of each part.
	Parts []api.ServiceHealth
	// Attention counts what needs attention at the locks; nil: unknown.
	Attention *api.HealthAttention
}

// Down reports whether clients should send no requests to this server.
func (h Health) Down() bool { return h.has(api.Down) }

func (h Health) has(status api.ServiceHealthStatus) bool {
	for _, p := range h.Parts {
		if p.Status == status {
			return true
		}
	}
	return false
}

func (h *handlers) GetHealth(
	ctx context.Context, _ openapi.GetHealthRequestObject,
) (openapi.GetHealthResponseObject, error) {
	health := h.healthNow(ctx)
	if !health.Ok {
		return openapi.GetHealth503JSONResponse(health), nil
	}
	return openapi.GetHealth200JSONResponse(health), nil
}

func (h *handlers) GetHealthByName(
	ctx context.Context, _ openapi.GetHealthByNameRequestObject,
) (openapi.GetHealthByNameResponseObject, error) {
	health := h.healthNow(ctx)
	if !health.Ok {
		return openapi.GetHealthByName503JSONResponse(health), nil
	}
	return openapi.GetHealthByName200JSONResponse(health), nil
}

func (h *handlers) healthNow(ctx context.Context) api.HealthResponse {
	var now Health
	if h.health != nil {
		now = h.health(ctx)
	}
	out := api.HealthResponse{
		Ok:                      !now.Down(),
		Msg:                     "All parts work.",
		LastServiceEvaluationAt: now.At,
		ServiceHealthStatuses:   now.Parts,
		Attention:               now.Attention,
	}
	switch {
	case now.Down():
		out.Msg = "This server cannot do its work; ask another one."
	case now.has(api.Degraded):
		out.Msg = "Requests are answered, but something is late or on hold."
	}
	if out.ServiceHealthStatuses == nil {
		out.ServiceHealthStatuses = []api.ServiceHealth{}
	}
	return out
}
