package access

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/store"
)

// SandboxAdapter is the adapter of accounts whose devices are simulated.
const SandboxAdapter = "sandbox"

// SandboxAccessAdapter is the adapter of accounts whose access systems are simulated.
const SandboxAccessAdapter = "sandbox_access"

// AccessControl is what is taken from accounts that have access systems, and from no other.
const AccessControl = "access_control"

// Account is a connected account: the way to a vendor's devices.
type Account struct {
	ID          uuid.UUID
	WorkspaceID uuid.UUID
	Adapter     string // the protocol, such as "devicecloud", or SandboxAdapter
	DisplayName string
	Config      json.RawMessage // address and credentials, as the adapter understands them: a secret
	Deleted     bool            // it was disconnected; Config is empty
	Seq         int64
}

func accountPlace(id uuid.UUID) string { return "connected_accounts.config/" + id.String() }

// NewAccount says how an account is reached and what its workspace is to keep about it.
type NewAccount struct {
	WorkspaceID uuid.UUID
	Adapter     string
	DisplayName string
	Address     string          // the vendor's end without any credential, such as a gateway's URL: one is connected once; empty: that does not matter
	Config      json.RawMessage // as for Account
	User        UserIdentifier
	SeeOnly     bool     // its devices are not managed when they appear
	Takes       []string // the kinds of devices that are taken from it; nil: locks
}

// ConnectAccount adds an account; its devices appear by themselves. It fails with Conflict when the address is
// connected.
func (s *Service) ConnectAccount(ctx context.Context, n NewAccount) (uuid.UUID, error) {
	id := newID()
	err := s.db.InTx(ctx, func(tx store.Tx) error { return s.connect(ctx, tx, id, n) })
	if store.Violates(err, addressIndex) {
		return id, s.AddressConnected(ctx, n.Adapter, n.Address, uuid.Nil)
	}
	if err != nil {
		return id, fmt.Errorf("connect the account %q: %w", n.DisplayName, err)
	}
	return id, nil
}

func (s *Service) connect(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if err := s.insertAccount(ctx, tx, id, n); err != nil {
		return err
	}
	return s.tellConnected(ctx, tx, n.WorkspaceID, id, nil)
}

// user says with what was logged in, or, where nobody has, which gateway it is.
func (n NewAccount) user() UserIdentifier {
	if n.User == (UserIdentifier{}) {
		return UserIdentifier{APIURL: n.Address}
	}
	return n.User
}

func (s *Service) insertAccount(ctx context.Context, tx store.Tx, id uuid.UUID, n NewAccount) error {
	if n.Takes == nil {
		n.Takes = []string{"lock"}
	}
	err := tx.InsertAccount(ctx, store.InsertAccountParams{ConnectedAccountID: id, WorkspaceID: n.WorkspaceID, Adapter: n.Adapter,
		DisplayName: n.DisplayName, ConfigSealed: s.keys.Seal(accountPlace(id), n.Config), AddressMac: s.addressMAC(n.Adapter, n.Address),
		UserIdentifier: mustJSON(n.user()), ManageNewDevices: !n.SeeOnly, AcceptedCapabilities: n.Takes})
	if err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, AccountLane, id)
}

// tellConnected tells of a new account, and of the webview on which it was logged in to; nil: it was on none, which the
// nil identifier says.
func (s *Service) tellConnected(ctx context.Context, tx store.Tx, workspace, id uuid.UUID, webview *uuid.UUID) error {
	created := about{workspace: workspace, account: id}
	connected := created
	if webview != nil {
		connected = connected.with("connect_webview_id", *webview)
		created = connected
	} else {
		created = created.with("connect_webview_id", uuid.Nil)
	}
	if err := s.emit(ctx, tx, "connected_account.created", created); err != nil {
		return err
	}
	return s.emit(ctx, tx, "connected_account.connected", connected)
}

// GetAccount reads an account with its credentials; one that was erased is a deleted one. For the adapters only.
func (s *Service) GetAccount(ctx context.Context, id uuid.UUID) (Account, error) {
	r, err := s.db.GetAccount(ctx, id)
	if store.IsNoRows(err) {
		return Account{ID: id, Deleted: true}, nil
	}
	if err != nil {
		return Account{}, fmt.Errorf("read the account %s: %w", id, err)
	}
	return s.toAccount(r)
}

// ListAccounts lists the accounts of one adapter, in all workspaces. For administration and start-up only.
func (s *Service) ListAccounts(ctx context.Context, adapter string) ([]Account, error) {
	rows, err := s.db.ListAccountsOfAdapter(ctx, adapter)
	if err != nil {
		return nil, fmt.Errorf("list the accounts: %w", err)
	}
	out := make([]Account, len(rows))
	for i, r := range rows {
		if out[i], err = s.toAccount(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) toAccount(r store.ConnectedAccount) (Account, error) {
	config, err := s.keys.Open(accountPlace(r.ConnectedAccountID), r.ConfigSealed)
	if err != nil {
		return Account{}, fmt.Errorf("open the credentials of account %s: %w", r.ConnectedAccountID, err)
	}
	return Account{ID: r.ConnectedAccountID, WorkspaceID: r.WorkspaceID, Adapter: r.Adapter, DisplayName: r.DisplayName, Config: config,
		Deleted: r.DeletedAt != nil, Seq: r.WakeSeq}, nil
}

// FoundDevice is one device as its vendor describes it.
type FoundDevice struct {
	Ref, Name, Type, Provider, Manufacturer, Model, SerialNumber string
	Online                                                       bool
	Locked                                                       *bool
	BatteryLevel                                                 *float64
	AutoLock                                                     *AutoLock // nil where unknown
	HubDisconnected                                              bool      // it is its hub that makes it offline
	SubscriptionMissing                                          bool      // its vendor puts no codes on it until it is paid for that
	Capabilities                                                 Capabilities
}

// RecordDevices takes in the complete list of an account's devices: new ones are added, known ones brought
// up to date, with an event for each transition. A device that is missing is not taken away for that (a list
// can be empty for a moment) but looked at by itself.
func (s *Service) RecordDevices(ctx context.Context, h Holder, account uuid.UUID, found []FoundDevice) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		a, err := tx.LockAccount(ctx, account)
		if err != nil || a.DeletedAt != nil {
			return err
		}
		if err := s.accountWorks(ctx, tx, a); err != nil {
			return err
		}
		rows, err := tx.ListDevicesOfAccount(ctx, account)
		if err != nil {
			return err
		}
		known := map[string]store.Device{}
		for _, r := range rows {
			known[r.VendorRef] = r
		}
		seen := map[string]bool{}
		for _, f := range found {
			if seen[f.Ref] || f.Ref != storable(f.Ref) { // some vendors list a device once per owner
				continue
			}
			seen[f.Ref] = true
			for _, text := range []*string{&f.Name, &f.Type, &f.Provider, &f.Manufacturer, &f.Model, &f.SerialNumber} {
				*text = storable(*text)
			}
			r, ok := known[f.Ref]
			delete(known, f.Ref)
			if ok && replaced(r, f) {
				if err := s.replaceDevice(ctx, tx, r); err != nil {
					return err
				}
				ok = false
			}
			if !ok {
				err = s.addDevice(ctx, tx, a, f)
			} else {
				err = s.refreshDevice(ctx, tx, r, f)
			}
			if err != nil {
				return err
			}
		}
		for _, r := range known {
			if r.RemovedAt == nil {
				if err := s.wakeDevice(ctx, tx, r.DeviceID, true); err != nil {
					return err
				}
			}
		}
		return s.accountSynced(ctx, tx, a)
	})
	if err != nil {
		return fmt.Errorf("record the devices of account %s: %w", account, err)
	}
	return nil
}

func (s *Service) addDevice(ctx context.Context, tx store.Tx, a store.ConnectedAccount, f FoundDevice) error {
	if !slices.Contains(a.AcceptedCapabilities, "lock") { // which is what all devices are so far
		return nil
	}
	r := store.Device{DeviceID: newID(), WorkspaceID: a.WorkspaceID, ConnectedAccountID: a.ConnectedAccountID, IsManaged: a.ManageNewDevices}
	var battery *string
	if f.BatteryLevel != nil {
		battery = new(BatteryStatus(*f.BatteryLevel))
	}
	on, delay := f.AutoLock.columns()
	r.Online, r.HubDisconnected = f.Online, f.HubDisconnected
	if f.SubscriptionMissing {
		r.SubscriptionMissingAt = new(s.opt.Now().UTC())
	}
	err := tx.InsertDevice(ctx, store.InsertDeviceParams{DeviceID: r.DeviceID, WorkspaceID: r.WorkspaceID, ConnectedAccountID: r.ConnectedAccountID,
		VendorRef: f.Ref, DeviceType: f.Type, Provider: f.Provider, Manufacturer: f.Manufacturer, Model: f.Model, SerialNumber: f.SerialNumber,
		Name: f.Name, Online: f.Online, Locked: f.Locked, BatteryLevel: f.BatteryLevel, Capabilities: mustJSON(f.Capabilities), Flags: f.Capabilities.Flags(),
		IsManaged: r.IsManaged, ToldBattery: battery, SeenAt: s.opt.Now().UTC(),
		AutoLockEnabled: on, AutoLockDelaySeconds: delay, HubDisconnected: f.HubDisconnected, SubscriptionMissingAt: r.SubscriptionMissingAt})
	if err != nil {
		return err
	}
	if err := s.emit(ctx, tx, "device.added", aboutDevice(r)); err != nil {
		return err
	}
	if f.Online {
		if err := s.emit(ctx, tx, ofDevice(r, "connected"), aboutDevice(r)); err != nil {
			return err
		}
	}
	if err := s.tellSubscription(ctx, tx, store.Device{}, r); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, DeviceLane, r.DeviceID)
}

func (s *Service) refreshDevice(ctx context.Context, tx store.Tx, r store.Device, f FoundDevice) error {
	if f.SerialNumber == "" { // it has not told yet
		f.SerialNumber = r.SerialNumber
	}
	same := r.RemovedAt == nil && r.Online == f.Online && r.Name == f.Name && r.DeviceType == f.Type && r.Provider == f.Provider &&
		r.Manufacturer == f.Manufacturer && r.Model == f.Model && r.SerialNumber == f.SerialNumber && reflect.DeepEqual(r.Locked, f.Locked) &&
		reflect.DeepEqual(r.BatteryLevel, f.BatteryLevel) && reflect.DeepEqual(foundCapabilities(r), f.Capabilities) && reflect.DeepEqual(autoLockOf(r), f.AutoLock) &&
		r.HubDisconnected == f.HubDisconnected && (r.SubscriptionMissingAt != nil) == f.SubscriptionMissing
	if same {
		return nil
	}
	onlineAt, lockedAt := r.OnlineChangedAt, r.LockedChangedAt
	if r.Online != f.Online {
		onlineAt = s.opt.Now().UTC()
	}
	if !reflect.DeepEqual(r.Locked, f.Locked) {
		lockedAt = s.opt.Now().UTC()
	}
	missing := r.SubscriptionMissingAt
	switch {
	case !f.SubscriptionMissing:
		missing = nil
	case missing == nil:
		missing = new(s.opt.Now().UTC())
	}
	on, delay := f.AutoLock.columns()
	err := tx.UpdateDevice(ctx, store.UpdateDeviceParams{DeviceID: r.DeviceID, OnlineChangedAt: onlineAt, LockedChangedAt: lockedAt, DeviceType: f.Type, Provider: f.Provider, Manufacturer: f.Manufacturer,
		Model: f.Model, SerialNumber: f.SerialNumber, Name: f.Name, Online: f.Online, Locked: f.Locked, BatteryLevel: f.BatteryLevel,
		Capabilities: mustJSON(f.Capabilities), Flags: f.Capabilities.Flags(), AutoLockEnabled: on, AutoLockDelaySeconds: delay,
		HubDisconnected: f.HubDisconnected, SubscriptionMissingAt: missing})
	if err != nil {
		return err
	}
	was := r
	r.HubDisconnected, r.SubscriptionMissingAt, r.AutoLockEnabled, r.AutoLockDelaySeconds = f.HubDisconnected, missing, on, delay
	r.RemovedAt, r.Online, r.Locked, r.BatteryLevel, r.Name = nil, f.Online, f.Locked, f.BatteryLevel, f.Name
	r.OnlineChangedAt, r.LockedChangedAt = onlineAt, lockedAt
	switch {
	case was.RemovedAt != nil:
		err = s.emit(ctx, tx, "device.added", aboutDevice(r))
	case was.Name != r.Name && r.Nickname == nil && r.IsManaged:
		err = s.emit(ctx, tx, "device.name_changed", aboutDevice(r).with("device_name", r.Name))
	}
	if err != nil {
		return err
	}
	if _, err := s.tell(ctx, tx, &r); err != nil {
		return err
	}
	if err := s.tellSubscription(ctx, tx, was, r); err != nil {
		return err
	}
	switch {
	case (was.SubscriptionMissingAt != nil) != (r.SubscriptionMissingAt != nil): // what has waited for it is done, or waits
		return s.wakeDevice(ctx, tx, r.DeviceID, true)
	case was.RemovedAt != nil || was.Online != r.Online: // nobody knows what happened to it meanwhile
		return s.wakeDevice(ctx, tx, r.DeviceID, true)
	case lockedAt != was.LockedChangedAt: // should nobody tell of that, it does
		return s.wakeDevice(ctx, tx, r.DeviceID, false)
	}
	return nil
}

// accountWorks records that an account answers.
func (s *Service) accountWorks(ctx context.Context, tx store.Tx, a store.ConnectedAccount) error {
	if a.ErrorCode == nil {
		return nil
	}
	if _, err := tx.SetAccountError(ctx, store.SetAccountErrorParams{ConnectedAccountID: a.ConnectedAccountID}); err != nil {
		return err
	}
	if err := tx.SetAccountErrorOfDevices(ctx, store.SetAccountErrorOfDevicesParams{ConnectedAccountID: a.ConnectedAccountID}); err != nil {
		return err
	}
	return s.emit(ctx, tx, "connected_account.connected", about{workspace: a.WorkspaceID, account: a.ConnectedAccountID})
}

// accountSynced tells that the devices of an account are there: those of one that was just connected, or that
// answers again.
func (s *Service) accountSynced(ctx context.Context, tx store.Tx, a store.ConnectedAccount) error {
	if err := s.authorizeWaiting(ctx, tx, a); err != nil {
		return err
	}
	event := "connected_account.completed_first_sync"
	first, err := tx.SetAccountSynced(ctx, a.ConnectedAccountID)
	switch {
	case err != nil:
		return err
	case first == 0 && a.ErrorCode == nil:
		return nil
	case first == 1:
		if err := tx.FinishWorkspaceAttempts(ctx, store.FinishWorkspaceAttemptsParams{WorkspaceID: a.WorkspaceID, ActionType: ResetSandboxWorkspace}); err != nil {
			return err
		}
	default:
		event = "connected_account.completed_first_sync_after_reconnection"
	}
	return s.emit(ctx, tx, event, about{workspace: a.WorkspaceID, account: a.ConnectedAccountID})
}

// accountDisconnected is the error of an account whose credentials are refused.
const accountDisconnected = "account_disconnected"

// RecordAccountRefused notes that an account's credentials are no longer accepted.
func (s *Service) RecordAccountRefused(ctx context.Context, h Holder, account uuid.UUID, message string) error {
	return s.recordAccountError(ctx, h, account, accountDisconnected, message)
}

// RecordAccountUnreachable notes that an account's gateway cannot be reached.
func (s *Service) RecordAccountUnreachable(ctx context.Context, h Holder, account uuid.UUID, message string) error {
	return s.recordAccountError(ctx, h, account, "bridge_disconnected", message)
}

func (s *Service) recordAccountError(ctx context.Context, h Holder, account uuid.UUID, code, message string) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if err := h.Check(ctx, tx); err != nil {
			return err
		}
		n, err := tx.SetAccountError(ctx, store.SetAccountErrorParams{ConnectedAccountID: account, ErrorCode: &code, ErrorMessage: &message})
		if err != nil || n == 0 {
			return err
		}
		a, err := tx.GetAccount(ctx, account)
		if err != nil {
			return err
		}
		err = tx.SetAccountErrorOfDevices(ctx, store.SetAccountErrorOfDevicesParams{ConnectedAccountID: account, AccountError: accountErrorOf(accountErrors(a))})
		if err != nil {
			return err
		}
		return s.emit(ctx, tx, "connected_account.disconnected", about{workspace: a.WorkspaceID, account: account}.withAccountTrouble(a))
	})
	if err != nil {
		return fmt.Errorf("record that account %s does not work: %w", account, err)
	}
	return nil
}

// Resync says that anything about an account and its devices may have changed.
func (s *Service) Resync(ctx context.Context, account uuid.UUID) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if _, err := tx.LockAccount(ctx, account); err != nil { // before its devices, as everybody does
			return err
		}
		return s.wakeWhole(ctx, tx, account)
	})
	if err != nil {
		return fmt.Errorf("look at account %s anew: %w", account, err)
	}
	return nil
}

// wakeWhole has an account and all its devices looked at. It is for those who hold the account's lock.
func (s *Service) wakeWhole(ctx context.Context, tx store.Tx, account uuid.UUID) error {
	devices, err := tx.ListDevicesOfAccount(ctx, account)
	if err != nil {
		return err
	}
	for _, d := range devices {
		if d.RemovedAt != nil {
			continue
		}
		if err := s.wakeDevice(ctx, tx, d.DeviceID, true); err != nil {
			return err
		}
	}
	if err := tx.WakeAccount(ctx, account); err != nil {
		return err
	}
	return s.waker.Wake(ctx, tx, AccountLane, account)
}

// Hint says that something about an account or one of its devices may have changed; an empty ref means
// the account as a whole. An unknown device makes the account be looked at.
func (s *Service) Hint(ctx context.Context, account uuid.UUID, ref string) error {
	err := s.db.InTx(ctx, func(tx store.Tx) error {
		if ref != "" {
			d, err := tx.GetDeviceByRef(ctx, store.GetDeviceByRefParams{ConnectedAccountID: account, VendorRef: ref})
			if err == nil && d.RemovedAt == nil && d.IsManaged { // of the others the account's list tells
				return s.wakeDevice(ctx, tx, d.DeviceID, true)
			}
			if err != nil && !store.IsNoRows(err) {
				return err
			}
		}
		if err := tx.WakeAccount(ctx, account); err != nil {
			return err
		}
		return s.waker.Wake(ctx, tx, AccountLane, account)
	})
	if err != nil {
		return fmt.Errorf("take a hint about account %s: %w", account, err)
	}
	return nil
}

// ScheduleAccount says after how long an account is to be looked at again; what has woken it since seq makes it due at once.
func (s *Service) ScheduleAccount(ctx context.Context, account uuid.UUID, seq int64, after time.Duration) error {
	return s.db.ScheduleAccount(ctx, store.ScheduleAccountParams{ConnectedAccountID: account, WakeSeq: seq, After: after})
}

// AccountDue says whether it is time to look at the account.
func (s *Service) AccountDue(ctx context.Context, account uuid.UUID) (bool, error) {
	due, err := s.db.AccountDue(ctx, account)
	if store.IsNoRows(err) {
		return false, nil
	}
	return due, err
}

// DueAccounts lists accounts that it is time to look at and nobody looks at.
func (s *Service) DueAccounts(ctx context.Context, limit int32) ([]uuid.UUID, error) {
	return s.db.DueAccounts(ctx, limit)
}
