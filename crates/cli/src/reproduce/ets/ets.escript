#!/usr/bin/env escript
%% -*- erlang -*-
%%! +Bd -noinput

%% Measures ordered ETS tables. Each call prints one line of JSON:
%%
%%   release
%%       The release of Erlang/OTP and the number of schedulers.
%%   inserts TABLE PROCESSES N
%%       The time in which the processes insert N integers. Each process inserts its own contiguous
%%       range, in ascending order.
%%   throughput TABLE PROCESSES MIX RANGE SECONDS
%%       The throughput of a mix of operations on the keys from 1 to RANGE. The table holds half of
%%       the keys at first.
%%   counters COUNTERS PROCESSES N
%%       The time of the same inserts, and the time of `ets:info(Table, size)`.
%%
%% TABLE     old: an AVL tree under one readers-writer lock
%%           new: a contention adapting search tree
%% MIX       INSERT/DELETE/LOOKUP or INSERT/DELETE/LOOKUP/SHARE:OPERATION, in percent. The operation
%%           is nextseq10, nextseq100, nextseq1000, selectAll or partial_select1000.
%% COUNTERS  single: one counter of the table's size
%%           striped: a counter for each scheduler
%%
%% The operations and mixes are those of `throughput_benchmark` in lib/stdlib/test/ets_SUITE.erl of
%% erlang/otp. The exit code is 1 if a result is wrong, and 2 if an argument is.

-mode(compile).

%% The oldest release that has `rand:exsp_next/1`.
-define(OLDEST, 25).

%% A random number has 58 bits. The low bits choose the key, and the high bits the operation.
-define(KEY_BITS, 30).
-define(OPERATION_BITS, 28).

%% The product of a key's bits and a range must be a small integer.
-define(LARGEST_RANGE, (1 bsl 28)).

%% The number of operations between two looks at the stop flag.
-define(BATCH, 8).

%% The number of times that `counters` asks for the size.
-define(CALLS, 100).

%% One run of a mix. An operation is an insert if its random bits are below `insert`, else a delete
%% if they are below `delete`, else a lookup if they are below `lookup`, else the other operation.
-record(run, {table, range, stop, insert, delete, lookup, other}).

main(Arguments) ->
    %% The process that measures must not wait for the processes that it measures.
    process_flag(priority, high),
    try
        list_to_integer(erlang:system_info(otp_release)) >= ?OLDEST
            orelse fail(1, "this needs Erlang/OTP ~b or later, but ~s is installed",
                        [?OLDEST, erlang:system_info(otp_release)]),
        call(Arguments)
    catch
        throw:{failure, Code, Sentence} ->
            io:put_chars(standard_error, ["error: ", Sentence, "\n"]),
            halt(Code)
    end.

call(["release"]) ->
    print([]);
call(["inserts", Table, Processes, N]) ->
    inserts(Table, options(Table), positive("PROCESSES", Processes), positive("N", N));
call(["throughput", Table, Processes, Mix, Range, Seconds]) ->
    Options = options(Table),
    P = positive("PROCESSES", Processes),
    Thresholds = thresholds(Mix),
    throughput({Table, Options}, P, {Mix, Thresholds}, range(Range), seconds(Seconds));
call(["counters", Counters, Processes, N]) ->
    Options = counter_options(Counters),
    counters(Counters, Options, positive("PROCESSES", Processes), positive("N", N));
call(_) ->
    fail(2, "use `release`, `inserts TABLE PROCESSES N`, "
         "`throughput TABLE PROCESSES MIX RANGE SECONDS` or `counters COUNTERS PROCESSES N`", []).

%%% The measurements

inserts(Name, Options, P, N) ->
    Table = ets:new(table, Options),
    Seconds = insert_ranges(Table, P, N),
    print([{"table", text(Name)}, {"processes", integer(P)}, {"n", integer(N)},
           {"seconds", decimal(Seconds)}, {"size", integer(checked_size(Table, N))}]).

counters(Name, Options, P, N) ->
    Table = ets:new(table, Options),
    Seconds = insert_ranges(Table, P, N),
    Size = checked_size(Table, N),
    Times = lists:sort([time_of_size(Table) || _ <- lists:seq(1, ?CALLS)]),
    Median = (lists:nth(?CALLS div 2, Times) + lists:nth(?CALLS div 2 + 1, Times)) / 2,
    print([{"counters", text(Name)}, {"processes", integer(P)}, {"n", integer(N)},
           {"seconds", decimal(Seconds)}, {"size", integer(Size)},
           {"size_micros", decimal(Median)}]).

throughput({Name, Options}, P, {Mix, {Insert, Delete, Lookup, Other}}, Range, Seconds) ->
    Table = ets:new(table, Options),
    prefill(Table, Range, Range div 2, generator(0)),
    Stop = atomics:new(1, []),
    Run = #run{table = Table, range = Range, stop = Stop,
               insert = Insert, delete = Delete, lookup = Lookup, other = Other},
    Work = fun(I) -> work(Run, generator(I), 0, ?BATCH) end,
    Meanwhile = fun() ->
                        timer:sleep(round(Seconds * 1000)),
                        atomics:put(Stop, 1, 1)
                end,
    %% The source rests for one second before a run of three seconds.
    {Counts, Elapsed} = together(P, Work, round(Seconds * 1000 / 3), Meanwhile),
    Operations = lists:sum(Counts),
    print([{"table", text(Name)}, {"processes", integer(P)}, {"mix", text(Mix)},
           {"operations", integer(Operations)}, {"seconds", decimal(Elapsed)},
           {"mops", decimal(Operations / Elapsed / 1.0e6)}]).

%% Process I of P inserts the I-th of P equal parts of the integers below N. Returns the seconds.
insert_ranges(Table, P, N) ->
    Work = fun(I) -> insert_range(Table, (I - 1) * N div P, I * N div P) end,
    {_, Seconds} = together(P, Work, 0, fun() -> ok end),
    Seconds.

insert_range(_, End, End) ->
    ok;
insert_range(Table, Key, End) ->
    ets:insert(Table, {Key}),
    insert_range(Table, Key + 1, End).

checked_size(Table, N) ->
    Size = ets:info(Table, size),
    Size =:= N orelse fail(1, "~b integers were inserted, but the table's size is ~b", [N, Size]),
    Size.

%% The time of one call, in microseconds.
time_of_size(Table) ->
    Start = erlang:monotonic_time(nanosecond),
    ets:info(Table, size),
    (erlang:monotonic_time(nanosecond) - Start) / 1000.

%% Runs Work(1) to Work(P) in parallel. All processes wait for a message, which is sent after `Rest`
%% milliseconds. `Meanwhile` runs in the calling process. Returns the results, and the seconds from
%% the message until the last process is done.
together(P, Work, Rest, Meanwhile) ->
    Parent = self(),
    Body = fun(I) ->
                   Parent ! ready,
                   receive go -> Parent ! {done, Work(I)} end
           end,
    Workers = [spawn_link(fun() -> Body(I) end) || I <- lists:seq(1, P)],
    [receive ready -> ok end || _ <- Workers],
    erlang:garbage_collect(),
    timer:sleep(Rest),
    Start = erlang:monotonic_time(nanosecond),
    [Worker ! go || Worker <- Workers],
    Meanwhile(),
    Results = [receive {done, Result} -> Result end || _ <- Workers],
    {Results, (erlang:monotonic_time(nanosecond) - Start) / 1.0e9}.

%%% The mixes

%% Inserts random keys until `Missing` more keys are in the table.
prefill(_, _, 0, _) ->
    ok;
prefill(Table, Range, Missing, Random) ->
    {Bits, Next} = rand:exsp_next(Random),
    case ets:insert_new(Table, {key(Bits, Range)}) of
        true -> prefill(Table, Range, Missing - 1, Next);
        false -> prefill(Table, Range, Missing, Next)
    end.

%% Runs random operations until the stop flag is set. Returns their number. `Left` is the number of
%% operations before the next look at the flag. A long operation is followed by a look.
work(#run{stop = Stop} = Run, Random, Done, 0) ->
    case atomics:get(Stop, 1) of
        0 -> work(Run, Random, Done, ?BATCH);
        1 -> Done
    end;
work(#run{table = Table} = Run, Random, Done, Left) ->
    {Bits, Next} = rand:exsp_next(Random),
    Key = key(Bits, Run#run.range),
    Choice = Bits bsr ?KEY_BITS,
    if
        Choice < Run#run.insert ->
            ets:insert(Table, {Key}),
            work(Run, Next, Done + 1, Left - 1);
        Choice < Run#run.delete ->
            ets:delete(Table, Key),
            work(Run, Next, Done + 1, Left - 1);
        Choice < Run#run.lookup ->
            ets:lookup(Table, Key),
            work(Run, Next, Done + 1, Left - 1);
        true ->
            other(Run#run.other, Table, Key),
            work(Run, Next, Done + 1, 0)
    end.

other({nextseq, Length}, Table, Start) ->
    nextseq(Table, Start, Length);
other(select_all, Table, _) ->
    %% This visits every entry, and returns their number.
    ets:select_count(Table, [{'_', [], [true]}]);
other({partial_select, Length}, Table, Start) ->
    %% ETS does not take bounds from guards: this also visits every entry.
    Guard = {'andalso', {'>', '$1', Start}, {'=<', '$1', Start + Length}},
    ets:select_count(Table, [{{'$1'}, [Guard], [true]}]).

nextseq(_, _, 0) ->
    ok;
nextseq(Table, Key, Left) ->
    case ets:next(Table, Key) of
        '$end_of_table' -> ok;
        Next -> nextseq(Table, Next, Left - 1)
    end.

%% The random numbers of a process. Its number is the seed.
generator(Seed) ->
    {_, Random} = rand:seed_s(exsp, Seed),
    Random.

%% A key from 1 to Range, from the low bits of a random number.
key(Bits, Range) ->
    1 + (((Bits band ((1 bsl ?KEY_BITS) - 1)) * Range) bsr ?KEY_BITS).

%%% The arguments

options("old") -> [ordered_set, public];
options("new") -> [ordered_set, public, {write_concurrency, true}, {read_concurrency, true}];
options(Other) -> fail(2, "TABLE is \"~ts\": use old or new", [Other]).

counter_options("striped") -> counter_options(true);
counter_options("single") -> counter_options(false);
counter_options(Striped) when is_boolean(Striped) ->
    [ordered_set, public, {write_concurrency, true}, {decentralized_counters, Striped}];
counter_options(Other) -> fail(2, "COUNTERS is \"~ts\": use striped or single", [Other]).

positive(Name, Text) ->
    case string:to_integer(Text) of
        {Number, ""} when Number > 0 -> Number;
        _ -> fail(2, "~s is \"~ts\": use a positive integer", [Name, Text])
    end.

range(Text) ->
    Range = positive("RANGE", Text),
    Range >= 2 andalso Range =< ?LARGEST_RANGE
        orelse fail(2, "RANGE is ~b: use 2 to ~b", [Range, ?LARGEST_RANGE]),
    Range.

seconds(Text) ->
    case number(Text) of
        Seconds when is_number(Seconds), Seconds > 0 -> Seconds;
        _ -> fail(2, "SECONDS is \"~ts\": use a positive number", [Text])
    end.

%% The bits below which a random number chooses an insert, a delete and a lookup, and the other
%% operation.
thresholds(Mix) ->
    {Shares, Other} =
        case string:split(Mix, "/", all) of
            [_, _, _] = Texts ->
                {[number(Text) || Text <- Texts], none};
            [I, D, L, Last] ->
                [Share | Operation] = string:split(Last, ":"),
                {[number(Text) || Text <- [I, D, L, Share]], operation(Operation, Mix)};
            _ ->
                bad_mix(Mix)
        end,
    lists:all(fun(Share) -> is_number(Share) andalso Share >= 0 end, Shares) orelse bad_mix(Mix),
    abs(lists:sum(Shares) - 100) < 1.0e-9
        orelse fail(2, "MIX is \"~ts\": its shares must add up to 100", [Mix]),
    [Insert, Delete, Lookup | _] = Shares,
    Bits = fun(Percent) -> round(Percent / 100 * (1 bsl ?OPERATION_BITS)) end,
    {Bits(Insert), Bits(Insert + Delete), Bits(Insert + Delete + Lookup), Other}.

operation(["nextseq10"], _) -> {nextseq, 10};
operation(["nextseq100"], _) -> {nextseq, 100};
operation(["nextseq1000"], _) -> {nextseq, 1000};
operation(["selectAll"], _) -> select_all;
operation(["partial_select1000"], _) -> {partial_select, 1000};
operation(_, Mix) ->
    fail(2, "MIX is \"~ts\": its operation must be nextseq10, nextseq100, nextseq1000, selectAll "
         "or partial_select1000", [Mix]).

bad_mix(Mix) ->
    fail(2, "MIX is \"~ts\": use INSERT/DELETE/LOOKUP or INSERT/DELETE/LOOKUP/SHARE:OPERATION, in "
         "percent", [Mix]).

%% A number with or without decimals, or `none`.
number(Text) ->
    case {string:to_float(Text), string:to_integer(Text)} of
        {{Number, ""}, _} -> Number;
        {_, {Number, ""}} -> Number;
        _ -> none
    end.

fail(Code, Format, Values) ->
    throw({failure, Code, io_lib:format(Format, Values)}).

%%% The output

%% Prints the fields and the properties of the system as one JSON object.
print(Fields) ->
    System = [{"otp", text(erlang:system_info(otp_release))},
              {"schedulers", integer(erlang:system_info(schedulers_online))}],
    Members = [["\"", Name, "\":", Value] || {Name, Value} <- Fields ++ System],
    io:put_chars(["{", lists:join(",", Members), "}\n"]).

%% The text needs no escapes: it is a checked argument or the release.
text(Text) -> ["\"", Text, "\""].

integer(Number) -> integer_to_list(Number).

decimal(Number) -> io_lib:format("~.6f", [Number]).
