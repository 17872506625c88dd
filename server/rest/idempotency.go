package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/api"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/admission"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/device"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/idempotency"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/noisesensor"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/rest/openapi"
)

// Headers of idempotent requests (draft-ietf-httpapi-idempotency-key-header).
const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"

	// acceptsKeysHeader tells clients that they can repeat a request with a key if its result is unknown. The draft
	// has no such header.
	acceptsKeysHeader = "Accept-Idempotency-Key"

	maxKey = 255 // characters
)

// keyOf returns the key of a request if its operation accepts one. Idempotent operations accept none.
func keyOf(o *operation, header http.Header) (string, error) {
	given := header.Values(keyHeader)
	if !o.keyed || len(given) == 0 {
		return "", nil
	}
	key := given[0]
	bad := len(given) > 1 || key == "" || len(key) > maxKey
	for i := range len(key) {
		bad = bad || key[i] < ' ' || key[i] > '~'
	}
	if bad {
		return "", &failure{
			status: http.StatusBadRequest,
			kind:   "invalid_idempotency_key",
			message: fmt.Sprintf(
				"The header %s takes one key of 1 to %d printable ASCII characters, such as a UUID",
				keyHeader,
				maxKey,
			),
		}
	}
	return key, nil
}

// replay replays the stored response to a request with a known key. Responses are stored as they are sent; all
// successful ones have the status 200.
func (h *handlers) replay(next openapi.StrictHandlerFunc, _ string) openapi.StrictHandlerFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		x := exchangeOf(ctx)
		if x.key == "" {
			return next(ctx, w, r, request)
		}
		content, err := json.Marshal(x.params) // sorted by name
		if err != nil {
			return nil, fmt.Errorf("write the parameters: %w", err)
		}
		keyed := idempotency.KeyedRequest{
			Operation:   x.operation.path,
			Key:         x.key,
			Content:     content,
			WithoutSlot: admission.WithoutSlot,
		}
		answer, replayed, err := h.access.Idempotency.Once(
			ctx,
			x.principal,
			keyed,
			func(ctx context.Context) ([]byte, error) {
				response, err := next(ctx, w, r, request)
				if err != nil {
					return nil, err
				}
				return encodeResponse(response)
			},
			func(ctx context.Context, attempt uuid.UUID) ([]byte, error) {
				a, err := h.access.Devices.GetAttempt(ctx, x.principal, attempt.String())
				if err != nil {
					return nil, err
				}
				return h.resumedResponse(ctx, x.operation, a)
			},
		)
		if err != nil {
			return nil, err
		}
		w.Header().Set("Content-Type", jsonUTF8)
		if replayed {
			w.Header().Set(replayedHeader, "true")
		}
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write(answer)
		return nil, nil
	}
}

// encodeResponse encodes a response like the generated code.
func encodeResponse(answer any) ([]byte, error) {
	var out bytes.Buffer
	err := json.NewEncoder(&out).Encode(answer)
	return out.Bytes(), err
}

// resumedResponse returns the response to a request that was interrupted while it waited for its attempt to end.
func (h *handlers) resumedResponse(ctx context.Context, o *operation, a device.Attempt) ([]byte, error) {
	answer, err := h.attemptResponse(ctx, a, nil, true)
	if err != nil {
		return nil, err
	}
	switch o.path {
	case "/access_codes/create":
		return h.resumedCode(ctx, a, answer)
	case "/noise_sensors/noise_thresholds/create":
		return h.resumedThreshold(ctx, a, answer)
	}
	return encodeResponse(answer)
}

func (h *handlers) resumedCode(
	ctx context.Context, a device.Attempt, answer api.ActionAttemptResponse,
) ([]byte, error) {
	code, err := h.access.Devices.GetCode(ctx, principal(ctx), true, a.CodeID.String(), "", "")
	if err != nil {
		return nil, err
	}
	return encodeResponse(api.AccessCodeCreatedResponse{
		Ok:            true,
		AccessCode:    toAccessCode(code),
		ActionAttempt: answer.ActionAttempt,
	})
}

func (h *handlers) resumedThreshold(
	ctx context.Context, a device.Attempt, answer api.ActionAttemptResponse,
) ([]byte, error) {
	found, err := h.access.NoiseSensors.ByID(ctx, principal(ctx), []uuid.UUID{a.Threshold})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 { // deleted meanwhile
		return nil, noisesensor.NotFound(a.Threshold.String())
	}
	return encodeResponse(openapi.CreateNoiseThreshold200JSONResponse{
		Ok:             true,
		NoiseThreshold: toNoiseThreshold(found[0]),
		ActionAttempt:  answer.ActionAttempt,
	})
}
