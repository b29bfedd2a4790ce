# Slurm on this machine alone: `slurm.sh FOLDER PROGRAM ARGUMENTS...`, each word of ARGUMENTS being an option of `srun`, starts PROGRAM once with
# each of them on two ranks. Before what a start prints stands "== OPTION", behind it "== status N". It runs in namespaces of its own for the
# network, the host's name and processes, so ports are free, the name has an address, and the daemons end with the script.
set -e
folder=$1 program=$2
shift 2
cd "$folder"
ip link set lo up
# Programs that ask for addresses of the kind that the host has (AI_ADDRCONFIG) do not count 127.0.0.1.
address=10.200.78.1
ip address add $address/32 dev lo
hostname localhost

mkdir -p state spool
head -c 1024 /dev/urandom >key
chmod 600 key
# One user and one machine: the socket may lie below a folder that others cannot enter.
munged --foreground --force --key-file="$folder/key" --socket="$folder/munge" --pid-file="$folder/munge.pid" \
    --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" >munged.out 2>&1 &

cat >slurm.conf <<END
ClusterName=test
SlurmctldHost=localhost($address)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$folder/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=localhost NodeAddr=$address CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
END
printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >cgroup.conf
export SLURM_CONF="$folder/slurm.conf"

# Until a command succeeds, for some ten seconds.
await() {
    for _ in $(seq 100); do
        if timeout 1 "$@" >/dev/null 2>&1; then return; fi
        sleep 0.1
    done
    echo "== no Slurm: $*"
    tail -n 3 ./*.out
    exit 0
}
await test -S munge
slurmctld -D -i >slurmctld.out 2>&1 &
await scontrol ping
slurmd -D >slurmd.out 2>&1 &
await sh -c "sinfo --noheader --format=%t | grep -q '^idle$'"

for option; do
    echo "== $option"
    status=0
    srun --quiet "$option" -n 2 "$program" 2>&1 || status=$?
    echo "== status $status"
done
