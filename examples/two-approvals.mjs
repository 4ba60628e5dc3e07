import '../scripts/no-arguments.mjs';
/** A payment that two people must approve: `npm run build && node examples/two-approvals.mjs`. */
import { ethTransaction, startCoordinator } from 'countersign/testing';

const coordinator = await startCoordinator({ seed: 'two approvals' });
const [alice, bob] = [await coordinator.createUser('Alice'), await coordinator.createUser('Bob')];
const { addresses } = await coordinator.createWallet('Treasury');
await coordinator.createPolicy({
  policyName: 'two people pay, one ether at most',
  condition: "activity.action == 'SIGN' && eth.tx.value <= 1000000000000000000",
  consensus: 'approvers.count() >= 2',
});

const pay = (wei) =>
  alice.client.submit('ACTIVITY_TYPE_SIGN_TRANSACTION_V2', {
    signWith: addresses[0],
    type: 'TRANSACTION_TYPE_ETHEREUM',
    unsignedTransaction: ethTransaction({ to: '0x1111111111111111111111111111111111111111', value: wei }),
  });

const asked = await pay(10n ** 18n);
console.log('Alice asks:  ', asked.status);
const signed = await bob.client.approve(asked.fingerprint);
console.log('Bob approves:', signed.status);
await pay(2n * 10n ** 18n).catch(({ status, body }) => console.log('Two ether:   ', status, body.turnkeyErrorCode));
for (const { revision, type, data } of (await coordinator.events()).slice(-3)) {
  console.log(revision, type, data.decision?.outcome ?? '');
}
await coordinator.close();
