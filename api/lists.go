package api

import (
	"context"
	"iter"
	"slices"
)

// pageSize is how many records a request asks for, so that responses stay small.
const pageSize = 500

// Devices lists the devices that match the request, page by page.
func (c *Client) Devices(ctx context.Context, request ListDevicesRequest) iter.Seq2[Device, error] {
	request.Limit = pageSize
	return Pages(func(cursor string) ([]Device, Pagination, error) {
		request.PageCursor = cursor
		answer, err := Call[DevicesResponse](ctx, c.ListDevices, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.Devices, answer.Pagination, nil
	})
}

// ConnectedAccounts lists the accounts that match the request, page by page.
func (c *Client) ConnectedAccounts(
	ctx context.Context, request ListConnectedAccountsRequest,
) iter.Seq2[ConnectedAccount, error] {
	request.Limit = pageSize
	return Pages(func(cursor string) ([]ConnectedAccount, Pagination, error) {
		request.PageCursor = cursor
		answer, err := Call[ConnectedAccountsResponse](ctx, c.ListConnectedAccounts, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.ConnectedAccounts, answer.Pagination, nil
	})
}

// ConnectWebviews lists the login pages of the workspace, page by page.
func (c *Client) ConnectWebviews(ctx context.Context) iter.Seq2[ConnectWebview, error] {
	return Pages(func(cursor string) ([]ConnectWebview, Pagination, error) {
		request := ListConnectWebviewsRequest{Limit: pageSize, PageCursor: cursor}
		answer, err := Call[ConnectWebviewsResponse](ctx, c.ListConnectWebviews, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.ConnectWebviews, answer.Pagination, nil
	})
}

// AcsUsers lists the users of access systems that match the request, page by page.
func (c *Client) AcsUsers(ctx context.Context, request ListAcsUsersRequest) iter.Seq2[AcsUser, error] {
	request.Limit = pageSize
	return Pages(func(cursor string) ([]AcsUser, Pagination, error) {
		request.PageCursor = cursor
		answer, err := Call[AcsUsersResponse](ctx, c.ListAcsUsers, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.AcsUsers, answer.Pagination, nil
	})
}

// UserIdentities lists the user identities of the workspace, page by page.
func (c *Client) UserIdentities(ctx context.Context) iter.Seq2[UserIdentity, error] {
	return Pages(func(cursor string) ([]UserIdentity, Pagination, error) {
		request := ListUserIdentitiesRequest{Limit: pageSize, PageCursor: cursor}
		answer, err := Call[UserIdentitiesResponse](ctx, c.ListUserIdentities, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.UserIdentities, answer.Pagination, nil
	})
}

// AccessCodes lists the managed codes of a device, page by page. Servers that ignore device_id also return codes of
// other devices. Unmanaged codes are skipped.
func (c *Client) AccessCodes(ctx context.Context, deviceID string) iter.Seq2[AccessCode, error] {
	return Pages(func(cursor string) ([]AccessCode, Pagination, error) {
		answer, err := Call[AccessCodesResponse](ctx, c.ListAccessCodes, ListAccessCodesRequest{
			DeviceID:   deviceID,
			Limit:      pageSize,
			PageCursor: cursor,
		})
		if err != nil {
			return nil, Pagination{}, err
		}
		managed := slices.DeleteFunc(answer.AccessCodes, func(code AccessCode) bool { return !code.IsManaged })
		return managed, answer.Pagination, nil
	})
}

// UnmanagedAccessCodes lists the unmanaged codes of a device, page by page. Servers that ignore device_id also return
// codes of other devices.
func (c *Client) UnmanagedAccessCodes(ctx context.Context, deviceID string) iter.Seq2[UnmanagedAccessCode, error] {
	return Pages(func(cursor string) ([]UnmanagedAccessCode, Pagination, error) {
		request := ListUnmanagedAccessCodesRequest{DeviceID: deviceID, Limit: pageSize, PageCursor: cursor}
		answer, err := Call[UnmanagedAccessCodesResponse](ctx, c.ListUnmanagedAccessCodes, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.AccessCodes, answer.Pagination, nil
	})
}

// Webhooks lists the webhooks of the workspace. The contract returns them on one page.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[Webhook, error] {
	return Pages(func(string) ([]Webhook, Pagination, error) {
		answer, err := Call[WebhooksResponse](ctx, c.ListWebhooks, EmptyRequest{})
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.Webhooks, Pagination{}, nil
	})
}

// Thermostats lists the thermostats that match the request. The contract returns them on one page.
func (c *Client) Thermostats(ctx context.Context, request ListThermostatsRequest) iter.Seq2[Device, error] {
	return Pages(func(string) ([]Device, Pagination, error) {
		answer, err := Call[ThermostatsResponse](ctx, c.ListThermostats, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.Thermostats, Pagination{}, nil
	})
}

// ThermostatSchedules lists the schedules of a thermostat. The contract returns them on one page.
func (c *Client) ThermostatSchedules(ctx context.Context, deviceID string) iter.Seq2[ThermostatSchedule, error] {
	return Pages(func(string) ([]ThermostatSchedule, Pagination, error) {
		request := ListThermostatSchedulesRequest{DeviceID: deviceID}
		answer, err := Call[ThermostatSchedulesResponse](ctx, c.ListThermostatSchedules, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.ThermostatSchedules, Pagination{}, nil
	})
}

// NoiseSensors lists the noise sensors that match the request. The contract returns them on one page.
func (c *Client) NoiseSensors(ctx context.Context, request ListNoiseSensorsRequest) iter.Seq2[Device, error] {
	return Pages(func(string) ([]Device, Pagination, error) {
		answer, err := Call[NoiseSensorsResponse](ctx, c.ListNoiseSensors, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.NoiseSensors, Pagination{}, nil
	})
}

// NoiseThresholds lists the thresholds of a noise sensor. The contract returns them on one page.
func (c *Client) NoiseThresholds(ctx context.Context, deviceID string) iter.Seq2[NoiseThreshold, error] {
	return Pages(func(string) ([]NoiseThreshold, Pagination, error) {
		request := ListNoiseThresholdsRequest{DeviceID: deviceID}
		answer, err := Call[NoiseThresholdsResponse](ctx, c.ListNoiseThresholds, request)
		if err != nil {
			return nil, Pagination{}, err
		}
		return answer.NoiseThresholds, Pagination{}, nil
	})
}
