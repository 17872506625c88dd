package overview

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain/capability"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/health"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Kind is what is wrong. Smaller kinds are worse.
type Kind int

// The kinds of findings, worst first.
const (
	AccountFailing Kind = iota
	CodeOverdue
	CodeFailing
	DeviceOffline
	BatteryCritical
	WebhookFailing
	UserFailing
	BatteryLow
)

// Finding is something that is wrong now.
type Finding struct {
	Kind Kind
	// ID is the account, code, device, webhook, or user of an access system.
	ID   uuid.UUID
	Name string
	// Capabilities are those of a device.
	Capabilities capability.Set
	// Device and DeviceName are the device of a code.
	Device     uuid.UUID
	DeviceName string
	Problem    string
	// Since is zero where it is unknown.
	Since time.Time
}

// MaxFindings is the maximum number of findings of each kind.
const MaxFindings = 50

// Findings returns what is wrong now in a workspace, worst first, and then oldest first.
func (s *Service) Findings(ctx context.Context, workspace uuid.UUID) (all []Finding, err error) {
	for _, find := range []func(context.Context, uuid.UUID) ([]Finding, error){
		s.failingAccounts, s.overdueCodes, s.failingCodes, s.offlineDevices, s.lowBatteries, s.failingWebhooks,
		s.failingUsers,
	} {
		found, err := find(ctx, workspace)
		if err != nil {
			return nil, fmt.Errorf("find what is wrong: %w", err)
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Since.Compare(b.Since))
	})
	return all, nil
}

func (s *Service) failingAccounts(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.FailingAccounts(
		ctx,
		dbsqlc.FailingAccountsParams{WorkspaceID: workspace, MaxRows: MaxFindings},
	)
	for _, r := range rows {
		out = append(out, Finding{
			Kind:    AccountFailing,
			ID:      r.ConnectedAccountID,
			Name:    cmp.Or(r.DisplayName, r.Provider),
			Problem: domain.Value(r.ErrorMessage),
			Since:   domain.Value(r.ErrorAt),
		})
	}
	return out, err
}

func (s *Service) overdueCodes(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.OverdueCodes(ctx, dbsqlc.OverdueCodesParams{
		WorkspaceID:    workspace,
		OverdueSeconds: health.OverdueAfter.Seconds(),
		MaxRows:        MaxFindings,
	})
	for _, r := range rows {
		problem := "The lock is online but has not set the code."
		if r.Status == "removing" {
			problem = "The lock is online but has not removed the code."
		}
		out = append(out, Finding{
			Kind:       CodeOverdue,
			ID:         r.AccessCodeID,
			Name:       codeName(r.Name),
			Device:     r.DeviceID,
			DeviceName: r.DeviceName,
			Problem:    problem,
			Since:      r.Since,
		})
	}
	return out, err
}

func (s *Service) failingCodes(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.FailingCodes(ctx, dbsqlc.FailingCodesParams{WorkspaceID: workspace, MaxRows: MaxFindings})
	for _, r := range rows {
		out = append(out, Finding{
			Kind:       CodeFailing,
			ID:         r.AccessCodeID,
			Name:       codeName(r.Name),
			Device:     r.DeviceID,
			DeviceName: r.DeviceName,
			Problem:    domain.Value(r.ErrorMessage),
			Since:      domain.Value(r.ErrorAt),
		})
	}
	return out, err
}

func (s *Service) offlineDevices(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.OfflineDevices(ctx, dbsqlc.OfflineDevicesParams{WorkspaceID: workspace, MaxRows: MaxFindings})
	for _, r := range rows {
		f := Finding{
			Kind:    DeviceOffline,
			ID:      r.DeviceID,
			Name:    r.Name,
			Problem: "The device is offline.",
			Since:   r.OnlineChangedAt,
		}
		if err := json.Unmarshal(r.Capabilities, &f.Capabilities); err != nil {
			return nil, fmt.Errorf("read the capabilities of device %s: %w", r.DeviceID, err)
		}
		out = append(out, f)
	}
	return out, err
}

func (s *Service) lowBatteries(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.LowBatteries(ctx, dbsqlc.LowBatteriesParams{WorkspaceID: workspace, MaxRows: MaxFindings})
	for _, r := range rows {
		kind := BatteryLow
		if r.Level < 0.1 {
			kind = BatteryCritical
		}
		f := Finding{
			Kind:    kind,
			ID:      r.DeviceID,
			Name:    r.Name,
			Problem: fmt.Sprintf("The battery is at %.0f %%.", r.Level*100),
		}
		if err := json.Unmarshal(r.Capabilities, &f.Capabilities); err != nil {
			return nil, fmt.Errorf("read the capabilities of device %s: %w", r.DeviceID, err)
		}
		out = append(out, f)
	}
	return out, err
}

func (s *Service) failingWebhooks(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.FailingWebhooks(
		ctx,
		dbsqlc.FailingWebhooksParams{WorkspaceID: workspace, MaxRows: MaxFindings},
	)
	for _, r := range rows {
		name, _, _ := strings.Cut(r.Url, "?") // the query may contain a token
		f := Finding{Kind: WebhookFailing, ID: r.WebhookID, Name: name, Since: domain.Value(r.FailingSince)}
		if r.DisabledAt != nil {
			f.Problem, f.Since = "The webhook is disabled: it receives no events.", *r.DisabledAt
		} else {
			f.Problem = fmt.Sprintf("The receiver has failed %d times in a row.", r.ConsecutiveFailures)
		}
		out = append(out, f)
	}
	return out, err
}

func (s *Service) failingUsers(ctx context.Context, workspace uuid.UUID) (out []Finding, err error) {
	rows, err := s.db.FailingUsers(ctx, dbsqlc.FailingUsersParams{
		WorkspaceID:    workspace,
		OverdueSeconds: health.OverdueAfter.Seconds(),
		MaxRows:        MaxFindings,
	})
	for _, r := range rows {
		out = append(out, Finding{
			Kind: UserFailing,
			ID:   r.AcsUserID,
			Name: r.FullName,
			Problem: cmp.Or(
				domain.Value(r.ErrorMessage),
				"The access system "+r.SystemName+" has not taken the change.",
			),
			Since: r.ChangedAt,
		})
	}
	return out, err
}

// Moment is when a code begins or ends.
type Moment struct {
	Code       uuid.UUID
	Name       string
	Status     string
	Device     uuid.UUID
	DeviceName string
	TimeZone   string // as for DeviceName
	At         time.Time
	Ends       bool // rather than begins
}

// MaxMoments is the maximum number of moments of each kind.
const MaxMoments = 100

// Moments returns which codes begin and end in a time, in this order.
func (s *Service) Moments(ctx context.Context, workspace uuid.UUID, since, until time.Time) (out []Moment, err error) {
	starting, err := s.db.CodesStarting(ctx, dbsqlc.CodesStartingParams{
		WorkspaceID: workspace,
		Since:       since,
		Until:       until,
		MaxRows:     MaxMoments,
	})
	if err != nil {
		return nil, fmt.Errorf("list the codes that begin: %w", err)
	}
	for _, r := range starting {
		out = append(
			out,
			Moment{r.AccessCodeID, codeName(r.Name), r.Status, r.DeviceID, r.DeviceName, r.TimeZone, r.At, false},
		)
	}
	ending, err := s.db.CodesEnding(ctx, dbsqlc.CodesEndingParams{
		WorkspaceID: workspace,
		Since:       since,
		Until:       until,
		MaxRows:     MaxMoments,
	})
	if err != nil {
		return nil, fmt.Errorf("list the codes that end: %w", err)
	}
	for _, r := range ending {
		out = append(
			out,
			Moment{r.AccessCodeID, codeName(r.Name), r.Status, r.DeviceID, r.DeviceName, r.TimeZone, r.At, true},
		)
	}
	slices.SortStableFunc(out, func(a, b Moment) int { return a.At.Compare(b.At) })
	return out, nil
}
