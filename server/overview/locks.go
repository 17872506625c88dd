package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/domain"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// activityDays is how many days DeviceFacts looks back for the last activity of a device.
const activityDays = 7

// DeviceFacts is what lists show of a device in addition.
type DeviceFacts struct {
	// Since is when the device went online or offline.
	Since       time.Time
	Account     uuid.UUID
	AccountName string
	Customer    string
	// Active is the time of the last event of the last seven days; zero: there was none.
	Active time.Time
}

// DeviceFacts returns facts about devices of a workspace.
func (s *Service) DeviceFacts(
	ctx context.Context,
	workspace uuid.UUID,
	devices []uuid.UUID,
) (map[uuid.UUID]DeviceFacts, error) {
	now := time.Now()
	since, until := store.EventIDs(now.Add(-activityDays*store.Day), now)
	rows, err := s.db.UnpreparedQueries.DeviceFacts(ctx, dbsqlc.DeviceFactsParams{
		WorkspaceID: workspace,
		SinceID:     since,
		UntilID:     until,
		DeviceIds:   devices,
	})
	if err != nil {
		return nil, fmt.Errorf("read facts about devices: %w", err)
	}
	out := map[uuid.UUID]DeviceFacts{}
	for _, r := range rows {
		f := DeviceFacts{
			Since:       r.OnlineChangedAt,
			Account:     r.ConnectedAccountID,
			AccountName: r.DisplayName,
			Customer:    domain.Value(r.CustomerKey),
		}
		if r.LastEventAt.Unix() > 0 {
			f.Active = r.LastEventAt
		}
		out[r.DeviceID] = f
	}
	return out, nil
}

// AccountName is the name of an account.
type AccountName struct {
	ID             uuid.UUID
	Name, Provider string
}

// maxChoices is the maximum number of accounts and vendors that Choices returns.
const maxChoices = 100

// Choices returns the newest accounts of a workspace, and its vendors, for filters.
func (s *Service) Choices(
	ctx context.Context,
	workspace uuid.UUID,
) (accounts []AccountName, vendors []string, err error) {
	rows, err := s.db.AccountChoices(
		ctx,
		dbsqlc.AccountChoicesParams{WorkspaceID: workspace, MaxRows: maxChoices},
	)
	if err != nil {
		return nil, nil, fmt.Errorf("read the names of accounts: %w", err)
	}
	for _, r := range rows {
		accounts = append(accounts, AccountName{ID: r.ConnectedAccountID, Name: r.DisplayName, Provider: r.Provider})
	}
	vendors, err = s.db.OverviewProviders(
		ctx,
		dbsqlc.OverviewProvidersParams{WorkspaceID: workspace, MaxRows: maxChoices},
	)
	if err != nil {
		return nil, nil, fmt.Errorf("read the vendors of accounts: %w", err)
	}
	return accounts, vendors, nil
}

// CountUnmanagedCodes counts the unmanaged codes of a device.
func (s *Service) CountUnmanagedCodes(ctx context.Context, workspace, device uuid.UUID) (int, error) {
	n, err := s.db.CountUnmanagedCodes(
		ctx,
		dbsqlc.CountUnmanagedCodesParams{WorkspaceID: workspace, DeviceID: device},
	)
	if err != nil {
		return 0, fmt.Errorf("count the unmanaged codes of device %s: %w", device, err)
	}
	return int(n), nil
}

// Creator is who created a code, or made it managed: a kind of actor of package audit and a name, which can be empty.
type Creator struct{ Kind, Name string }

// Creators returns who created codes. Codes whose audit entry has expired, or that the server created, are absent.
func (s *Service) Creators(ctx context.Context, workspace uuid.UUID, codes []uuid.UUID) (map[uuid.UUID]Creator, error) {
	out := map[uuid.UUID]Creator{}
	if len(codes) == 0 {
		return out, nil
	}
	rows, err := s.db.UnpreparedQueries.CreatorsOfCodes(
		ctx,
		dbsqlc.CreatorsOfCodesParams{WorkspaceID: workspace, AccessCodeIds: codes},
	)
	if err != nil {
		return nil, fmt.Errorf("read who created codes: %w", err)
	}
	for _, r := range rows {
		out[r.AccessCodeID] = Creator{r.ActorKind, r.ActorName}
	}
	return out, nil
}
