package rest

import (
	"context"
	"log/slog"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
)

// healthWithin bounds how long the parts of the service may take to give a sign of life.
const healthWithin = 2 * time.Second

func (h *handlers) GetHealth(ctx context.Context, _ GetHealthRequestObject) (GetHealthResponseObject, error) {
	health := h.health(ctx)
	if !health.Ok {
		return GetHealth503JSONResponse(health), nil
	}
	return GetHealth200JSONResponse(health), nil
}

func (h *handlers) GetHealthByName(ctx context.Context, _ GetHealthByNameRequestObject) (GetHealthByNameResponseObject, error) {
	health := h.health(ctx)
	if !health.Ok {
		return GetHealthByName503JSONResponse(health), nil
	}
	return GetHealthByName200JSONResponse(health), nil
}

func (h *handlers) health(ctx context.Context) api.HealthResponse {
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	found, err := h.access.Health(ctx)
	if err != nil {
		h.logger.ErrorContext(ctx, "the database gives no sign of life", slog.String("cause", err.Error()))
		down := api.ServiceHealth{Service: "database", Status: api.Down, Description: "The database does not answer; the log says why."}
		return api.HealthResponse{Msg: "The service cannot work without its database.", ServiceHealthStatuses: []api.ServiceHealth{down}}
	}
	return api.HealthResponse{
		Ok: true, Msg: "All parts work.", LastServiceEvaluationAt: found,
		ServiceHealthStatuses: []api.ServiceHealth{{Service: "database", Status: api.Healthy, Description: "The database answers."}},
	}
}
