#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calibration by the processes of mpirun: the state is that of one process, to the byte.
. tests/cli/support.sh
train=data/digits/train.npz
expect 0 quantize "$digits" --backend x86 --qconfig examples/minmax.json --stop prepare -o "$work/prepared"

if [ -z "${TARE_MPIRUN-}" ]; then
    export OMPI_COMM_WORLD_SIZE=2
    refuses 1 'built without MPI' calibrate "$work/prepared" --data "$train" -o "$work/out"
    expect 0 calibrate "$work/prepared" --data "$train" --limit 32 --shard 0/2 -o "$work/0.state"
    export OMPI_COMM_WORLD_SIZE=1
    expect 0 calibrate "$work/prepared" --data "$train" --limit 32 -o "$work/one.state"
    echo 'skipped: built without MPI (-DTARE_MPI=ON)'
    exit 77
fi

# Open MPI refuses root, and more processes than there are cores, unless told otherwise.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export TMPDIR="$work"
one=$tare
printf '#!/bin/sh\nexec timeout 120 "%s" -n "$COUNT" "%s" "$@"\n' "$TARE_MPIRUN" "$one" >"$work/mpirun.sh"
chmod +x "$work/mpirun.sh"

sed 's/"class": "MinMaxObserver"/"class": "tare.MergeableHistogramObserver"/' examples/minmax.json >"$work/histogram.json"
expect 0 quantize "$digits" --backend x86 --qconfig "$work/histogram.json" --stop prepare -o "$work/own"
expect 0 calibrate "$work/own" --data "$train" --limit 200 -o "$work/one.state"
tare=$work/mpirun.sh
for COUNT in 1 2 3 5; do
    export COUNT
    expect 0 calibrate "$work/own" --data "$train" --limit 200 -o "$work/all.state" --json
    says '"samples": 200'
    says '"done_shards": 1'
    [ "$(grep -c samples "$work/stdout")" -eq 1 ] || fail 'more than one process speaks'
    cmp "$work/one.state" "$work/all.state" || fail "$COUNT processes give another state"
done

# A process without data is no failure; one that fails ends the job, and no file is left.
expect 0 calibrate "$work/own" --data "$train" --limit 20 -o "$work/all.state"
says '20 samples'
tare=$one
expect 0 calibrate "$work/own" --data "$train" --limit 20 -o "$work/one.state"
cmp "$work/one.state" "$work/all.state" || fail 'processes without data show'
tare=$work/mpirun.sh
fails() {
    wanted=$1
    shift
    status=0
    "$tare" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || status=$?
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] || fail "tare $*: status $status"
    complains "$wanted"
}
fails 'cannot be made' calibrate "$work/own" --data "$train" -o "$work/out/none"
fails 'expected a prepared model' calibrate "$digits" --data "$train" -o "$work/out"
fails 'works on one state' calibrate "$work/own" --data "$train" --resume -o "$work/out"
expect 0 quantize "$digits" --backend x86 --stop prepare -o "$work/histograms"
fails 'cannot be merged exactly' calibrate "$work/histograms" --data "$train" -o "$work/out"
[ ! -e "$work/out" ] || fail 'a failed job left its output'
for left in "$work"/tare-*; do
    [ ! -e "$left" ] || fail "left behind: $left"
done
