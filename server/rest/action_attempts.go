package rest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

func (h *handlers) GetActionAttempt(
	ctx context.Context, r openapi.GetActionAttemptRequestObject,
) (openapi.GetActionAttemptResponseObject, error) {
	attempt, err := h.access.Devices.GetAttempt(ctx, principal(ctx), r.Body.ActionAttemptID)
	answer, err := h.attemptResponse(ctx, attempt, err, false)
	if err != nil {
		return nil, err
	}
	return openapi.GetActionAttempt200JSONResponse(answer), nil
}

func (h *handlers) ListActionAttempts(
	ctx context.Context, r openapi.ListActionAttemptsRequestObject,
) (openapi.ListActionAttemptsResponseObject, error) {
	page, err := h.pager.open(ctx, r.Body.Limit)
	if err != nil {
		return nil, err
	}
	list, more, err := h.access.Devices.ListAttempts(
		ctx,
		principal(ctx),
		r.Body.ActionAttemptIds,
		r.Body.DeviceID,
		page.Page,
	)
	if err != nil {
		return nil, err
	}
	shown, err := h.toAttempts(ctx, list)
	if err != nil {
		return nil, err
	}
	last := lastPosition(list, func(a device.Attempt) (time.Time, uuid.UUID) { return a.CreatedAt, a.ID })
	return openapi.ListActionAttempts200JSONResponse{
		Ok:             true,
		ActionAttempts: shown,
		Pagination:     page.pagination(more, last),
	}, nil
}

// attemptResponse returns the response of an operation that starts an attempt, or its error.
func (h *handlers) attemptResponse(
	ctx context.Context, attempt device.Attempt, err error, sync bool,
) (api.ActionAttemptResponse, error) {
	if err == nil && sync {
		attempt, err = h.awaitAttempt(ctx, attempt)
	}
	if err != nil {
		return api.ActionAttemptResponse{}, err
	}
	shown, err := h.toAttempt(ctx, attempt)
	return api.ActionAttemptResponse{Ok: true, ActionAttempt: shown}, err
}

// syncTimeout is how long a request with sync waits for its attempt to end.
const syncTimeout = 10 * time.Second

// awaitAttempt waits up to syncTimeout until an attempt ends, and returns its latest state. It does not wait if too many
// requests wait.
func (h *handlers) awaitAttempt(ctx context.Context, attempt device.Attempt) (device.Attempt, error) {
	who := principal(ctx).CredentialID
	if !h.waits.enter(who) {
		return attempt, nil
	}
	defer h.waits.leave(who)
	admission.Release(ctx)
	return h.access.Devices.AwaitAttempt(ctx, principal(ctx), attempt, syncTimeout)
}

func (h *handlers) toAttempt(ctx context.Context, attempt device.Attempt) (api.ActionAttempt, error) {
	shown, err := h.toAttempts(ctx, []device.Attempt{attempt})
	if err != nil {
		return api.ActionAttempt{}, err
	}
	return shown[0], nil
}

// toAttempts converts attempts. Attempts that created or changed a code contain its current state.
func (h *handlers) toAttempts(ctx context.Context, attempts []device.Attempt) ([]api.ActionAttempt, error) {
	codes, err := h.resultsOf(ctx, attempts)
	if err != nil {
		return nil, err
	}
	thresholds, err := h.thresholdsOf(ctx, attempts)
	if err != nil {
		return nil, err
	}
	return each(attempts, func(a device.Attempt) api.ActionAttempt {
		shown := showAttempt(a, nil)
		if code, ok := codes[a.CodeID.String()]; ok {
			shown = showAttempt(a, &code)
		}
		if threshold, ok := thresholds[a.Threshold]; ok && carriesThreshold(a) {
			shown.Result = map[string]any{"noise_threshold": threshold}
		}
		return shown
	}), nil
}

// showAttempt converts an attempt. code is the current state of the code that it created or changed, or nil if the
// code is deleted.
func showAttempt(a device.Attempt, code *api.AccessCode) api.ActionAttempt {
	out := api.ActionAttempt{
		ActionAttemptID: a.ID.String(),
		ActionType:      a.Type,
		Status:          api.ActionAttemptStatus(a.Status),
	}
	switch a.Status {
	case device.Succeeded:
		result := map[string]any{}
		if code != nil && carriesCode(a) {
			result["access_code"] = *code
		}
		if a.Type == domain.LockDoor || a.Type == domain.UnlockDoor { // success implies confirmation
			result["was_confirmed_by_device"] = true
		}
		out.Result = result
	case device.Failed:
		out.Error = &api.ActionAttemptError{Type: a.ErrorType, Message: a.Message}
	}
	return out
}

func carriesCode(a device.Attempt) bool {
	return a.Status == device.Succeeded && (a.Type == domain.CreateAccessCode || a.Type == domain.UpdateAccessCode)
}

// resultsOf reads the codes that attempts created or changed in one query, by identifier.
func (h *handlers) resultsOf(ctx context.Context, attempts []device.Attempt) (map[string]api.AccessCode, error) {
	var ids []string
	for _, a := range attempts {
		if carriesCode(a) {
			ids = append(ids, a.CodeID.String())
		}
	}
	if ids == nil {
		return nil, nil
	}
	list, _, err := h.access.Devices.ListCodes(ctx, principal(ctx), device.CodeFilter{
		Managed: true,
		IDs:     &ids,
	}, domain.Page{Limit: len(ids)})
	if err != nil {
		return nil, err
	}
	codes := make(map[string]api.AccessCode, len(list))
	for _, c := range list {
		codes[c.ID.String()] = toAccessCode(c)
	}
	return codes, nil
}
