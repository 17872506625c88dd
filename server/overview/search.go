package overview

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store/dbsqlc"
)

// Kinds of resources in Hit, in addition to those of DeviceFilter.
const (
	HitCode          = "code"
	HitUnmanagedCode = "unmanaged_code"
	HitAccount       = "account"
	HitWebhook       = "webhook"
	HitIdentity      = "identity"
	HitUser          = "user"
	HitSystem        = "system"
	HitGroup         = "group"
	HitEvent         = "event"
	HitAttempt       = "attempt"
	HitKey           = "key"
	HitRemoved       = "removed" // a device that its account no longer has
)

// Hit is a resource that a search found.
type Hit struct {
	Kind string
	ID   uuid.UUID
	Name string
	// More tells resources with the same name apart, such as the lock of a code.
	More string
}

const (
	// MaxHits is the maximum number of hits of each kind.
	MaxHits = 10
	// MaxSearched is the number of the newest resources of each kind that a search reads.
	MaxSearched = 10_000
)

// FindID returns what an identifier names in a workspace: for codes that are not managed and for attempts, the device.
// It returns false if there is no such resource.
func (s *Service) FindID(ctx context.Context, workspace, id uuid.UUID) (h Hit, found bool, err error) {
	r, err := s.db.FindByID(ctx, dbsqlc.FindByIDParams{ID: id, WorkspaceID: workspace})
	switch {
	case store.IsNoRows(err):
		return Hit{}, false, nil
	case err != nil:
		return Hit{}, false, fmt.Errorf("look up an identifier: %w", err)
	case r.Kind == HitUnmanagedCode, r.Kind == HitAttempt, r.Kind == HitIdentity:
		id = r.Owner
	}
	return Hit{Kind: r.Kind, ID: id}, true, nil
}

// Search returns the resources of a workspace whose name contains a text, at most MaxHits of each kind and among the
// newest MaxSearched.
func (s *Service) Search(ctx context.Context, workspace uuid.UUID, text string) (all []Hit, err error) {
	pattern := store.SearchPattern(text)
	if pattern == nil {
		return nil, nil
	}
	for _, search := range []func(context.Context, uuid.UUID, string) ([]Hit, error){
		s.searchDevices, s.searchCodes, s.searchAccounts, s.searchIdentities, s.searchUsers,
	} {
		hits, err := search(ctx, workspace, *pattern)
		if err != nil {
			return nil, fmt.Errorf("search names: %w", err)
		}
		all = append(all, hits...)
	}
	return all, nil
}

func (s *Service) searchDevices(ctx context.Context, workspace uuid.UUID, pattern string) (out []Hit, err error) {
	rows, err := s.db.SearchDevices(ctx, dbsqlc.SearchDevicesParams{
		WorkspaceID: workspace,
		Pattern:     pattern,
		MaxRead:     MaxSearched,
		MaxRows:     MaxHits,
	})
	for _, r := range rows {
		out = append(out, Hit{r.Kind, r.ID, r.Name, ""})
	}
	return out, err
}

func (s *Service) searchCodes(ctx context.Context, workspace uuid.UUID, pattern string) (out []Hit, err error) {
	rows, err := s.db.SearchCodes(ctx, dbsqlc.SearchCodesParams{
		WorkspaceID: workspace,
		Pattern:     pattern,
		MaxRead:     MaxSearched,
		MaxRows:     MaxHits,
	})
	for _, r := range rows {
		out = append(out, Hit{HitCode, r.ID, r.Name, r.DeviceName})
	}
	return out, err
}

func (s *Service) searchAccounts(ctx context.Context, workspace uuid.UUID, pattern string) (out []Hit, err error) {
	rows, err := s.db.SearchAccounts(ctx, dbsqlc.SearchAccountsParams{
		WorkspaceID: workspace,
		Pattern:     pattern,
		MaxRead:     MaxSearched,
		MaxRows:     MaxHits,
	})
	for _, r := range rows {
		out = append(out, Hit{HitAccount, r.ID, r.Name, r.Provider})
	}
	return out, err
}

func (s *Service) searchIdentities(ctx context.Context, workspace uuid.UUID, pattern string) (out []Hit, err error) {
	rows, err := s.db.SearchIdentities(ctx, dbsqlc.SearchIdentitiesParams{
		WorkspaceID: workspace,
		Pattern:     pattern,
		MaxRead:     MaxSearched,
		MaxRows:     MaxHits,
	})
	for _, r := range rows {
		out = append(out, Hit{HitIdentity, r.ID, r.Name, r.Email})
	}
	return out, err
}

func (s *Service) searchUsers(ctx context.Context, workspace uuid.UUID, pattern string) (out []Hit, err error) {
	rows, err := s.db.SearchUsers(ctx, dbsqlc.SearchUsersParams{
		WorkspaceID: workspace,
		Pattern:     pattern,
		MaxRead:     MaxSearched,
		MaxRows:     MaxHits,
	})
	for _, r := range rows {
		out = append(out, Hit{HitUser, r.ID, r.Name, r.SystemName})
	}
	return out, err
}

// SearchKeys returns the API keys of a workspace that end with four characters.
func (s *Service) SearchKeys(ctx context.Context, workspace uuid.UUID, lastFour string) (out []Hit, err error) {
	rows, err := s.db.SearchKeys(ctx, dbsqlc.SearchKeysParams{
		WorkspaceID: workspace,
		LastFour:    lastFour,
		MaxRows:     MaxHits,
	})
	if err != nil {
		return nil, fmt.Errorf("search keys: %w", err)
	}
	for _, r := range rows {
		out = append(out, Hit{HitKey, r.ID, r.Name, r.Hint})
	}
	return out, nil
}

// Installation is what a server says of its database.
type Installation struct {
	// Schema is the number of the newest migration.
	Schema int64
	// PostgreSQL is its version.
	PostgreSQL string
	// DataKeyAt is when the current encryption key was created.
	DataKeyAt time.Time
	// LastBackup is when the last backup ended. Before the first backup, it is when the installation began.
	LastBackup time.Time
}

// Installation reads the versions and ages that the settings show.
func (s *Service) Installation(ctx context.Context) (i Installation, err error) {
	if i.Schema, i.PostgreSQL, err = s.db.Versions(ctx); err != nil {
		return i, err
	}
	if i.DataKeyAt, err = s.db.CurrentDataKey(ctx); err != nil && !store.IsNoRows(err) {
		return i, fmt.Errorf("read the age of the encryption key: %w", err)
	}
	if i.LastBackup, err = s.db.GetLastBackup(ctx); err != nil {
		return i, fmt.Errorf("read the time of the last backup: %w", err)
	}
	return i, nil
}
