package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"slices"
)

// Reads serves reads of single objects from list pages, so that reading all objects of a list takes a few requests
// instead of one per object. Results are at most a minute old, and never older than the last write through the same
// client.
//
// Its methods return nil if the list cannot be used: the object is not on it, the server does not support the list,
// or the process has written to the object or its device. Callers then read the object itself. Callers that wait for
// a change must not use Reads.
type Reads struct {
	codes      *listCache[AccessCode]
	unmanaged  *listCache[UnmanagedAccessCode]
	webhooks   *listCache[Webhook]
	devices    *listCache[Device]
	acsUsers   *listCache[AcsUser]
	identities *listCache[UserIdentity]
	schedules  *listCache[ThermostatSchedule]
	thresholds *listCache[NoiseThreshold]
}

// NewReads returns the Reads of a client, and makes the client report each write to it.
func NewReads(client *Client) *Reads {
	r := &Reads{
		codes: newListCache(
			client.AccessCodes,
			func(c *AccessCode) (string, string) { return c.DeviceID, c.AccessCodeID },
		),
		unmanaged: newListCache(
			client.UnmanagedAccessCodes,
			func(c *UnmanagedAccessCode) (string, string) { return c.DeviceID, c.AccessCodeID },
		),
		webhooks: newListCache(
			func(ctx context.Context, _ string) iter.Seq2[Webhook, error] { return client.Webhooks(ctx) },
			func(w *Webhook) (string, string) { return "", w.WebhookID },
		),
		devices: newListCache(
			func(ctx context.Context, _ string) iter.Seq2[Device, error] {
				return client.Devices(ctx, ListDevicesRequest{})
			},
			func(d *Device) (string, string) { return "", d.DeviceID },
		),
		acsUsers: newListCache(
			func(ctx context.Context, system string) iter.Seq2[AcsUser, error] {
				return client.AcsUsers(ctx, ListAcsUsersRequest{AcsSystemID: system})
			},
			func(u *AcsUser) (string, string) { return u.AcsSystemID, u.AcsUserID },
		),
		identities: newListCache(
			func(ctx context.Context, _ string) iter.Seq2[UserIdentity, error] { return client.UserIdentities(ctx) },
			func(i *UserIdentity) (string, string) { return "", i.UserIdentityID },
		),
		schedules: newListCache(
			client.ThermostatSchedules,
			func(s *ThermostatSchedule) (string, string) { return s.DeviceID, s.ThermostatScheduleID },
		),
		thresholds: newListCache(
			client.NoiseThresholds,
			func(t *NoiseThreshold) (string, string) { return t.DeviceID, t.NoiseThresholdID },
		),
	}
	client.Client = invalidating{client.Client, r}
	return r
}

// AccessCode returns a managed code of a device from its list, or nil.
func (r *Reads) AccessCode(ctx context.Context, deviceID, id string) *AccessCode {
	if deviceID == "" {
		return nil // servers list by device only
	}
	return r.codes.find(ctx, deviceID, id)
}

// UnmanagedAccessCode returns an unmanaged code of a device from its list, or nil.
func (r *Reads) UnmanagedAccessCode(ctx context.Context, deviceID, id string) *UnmanagedAccessCode {
	if deviceID == "" {
		return nil
	}
	return r.unmanaged.find(ctx, deviceID, id)
}

// AccessCodesOn returns the managed codes of a device in no particular order, or false if the list cannot be used.
func (r *Reads) AccessCodesOn(ctx context.Context, deviceID string) ([]AccessCode, bool) {
	return r.codes.all(ctx, deviceID)
}

// UnmanagedAccessCodesOn returns the unmanaged codes of a device in no particular order, or false if the list cannot
// be used.
func (r *Reads) UnmanagedAccessCodesOn(ctx context.Context, deviceID string) ([]UnmanagedAccessCode, bool) {
	return r.unmanaged.all(ctx, deviceID)
}

// Webhook returns a webhook from the list, or nil.
func (r *Reads) Webhook(ctx context.Context, id string) *Webhook { return r.webhooks.find(ctx, "", id) }

// Device returns a managed device from the list, or nil.
func (r *Reads) Device(ctx context.Context, id string) *Device { return r.devices.find(ctx, "", id) }

// Devices returns all managed devices in no particular order, or false if their list cannot be used.
func (r *Reads) Devices(ctx context.Context) ([]Device, bool) { return r.devices.all(ctx, "") }

// AcsUser returns a user from the list of its access system, or nil.
func (r *Reads) AcsUser(ctx context.Context, systemID, id string) *AcsUser {
	if systemID == "" {
		return nil // the list of all systems may be long
	}
	return r.acsUsers.find(ctx, systemID, id)
}

// UserIdentity returns a user identity from the list, or nil.
func (r *Reads) UserIdentity(ctx context.Context, id string) *UserIdentity {
	return r.identities.find(ctx, "", id)
}

// ThermostatSchedule returns a schedule from the list of its thermostat, or nil.
func (r *Reads) ThermostatSchedule(ctx context.Context, deviceID, id string) *ThermostatSchedule {
	if deviceID == "" {
		return nil // servers list by device only
	}
	return r.schedules.find(ctx, deviceID, id)
}

// NoiseThreshold returns a threshold from the list of its noise sensor, or nil.
func (r *Reads) NoiseThreshold(ctx context.Context, deviceID, id string) *NoiseThreshold {
	if deviceID == "" {
		return nil
	}
	return r.thresholds.find(ctx, deviceID, id)
}

func (r *Reads) invalidate(names []string) {
	r.codes.invalidate(names)
	r.unmanaged.invalidate(names)
	r.webhooks.invalidate(names)
	r.devices.invalidate(names)
	r.acsUsers.invalidate(names)
	r.identities.invalidate(names)
	r.schedules.invalidate(names)
	r.thresholds.invalidate(names)
}

// invalidating invalidates the cached lists after each write, whether the write succeeds or fails.
type invalidating struct {
	next  HttpRequestDoer
	reads *Reads
}

func (n invalidating) Do(req *http.Request) (*http.Response, error) {
	if !isRead(req.URL.Path) {
		names := namesIn(req)
		defer func() { n.reads.invalidate(names) }()
	}
	return n.next.Do(req)
}

// namesIn returns the identifiers of the resources that a request writes to.
func namesIn(req *http.Request) []string {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	encoded, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	var named struct {
		AccessCodeID   string   `json:"access_code_id"`
		AccessCodeIDs  []string `json:"access_code_ids"`
		AcsSystemID    string   `json:"acs_system_id"`
		AcsUserID      string   `json:"acs_user_id"`
		DeviceID       string   `json:"device_id"`
		DeviceIDs      []string `json:"device_ids"`
		NoiseThreshold string   `json:"noise_threshold_id"`
		ScheduleID     string   `json:"thermostat_schedule_id"`
		UserIdentityID string   `json:"user_identity_id"`
		WebhookID      string   `json:"webhook_id"`
	}
	if json.Unmarshal(encoded, &named) != nil {
		return nil
	}
	names := slices.Concat(named.AccessCodeIDs, named.DeviceIDs, []string{
		named.AccessCodeID,
		named.AcsSystemID,
		named.AcsUserID,
		named.DeviceID,
		named.NoiseThreshold,
		named.ScheduleID,
		named.UserIdentityID,
		named.WebhookID,
	})
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
